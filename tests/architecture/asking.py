"""Which functions ask whether the actor may, found in the source: by themselves, or by a function that they call."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

ASKING = frozenset({"authorize", "visible_to"})
FunctionId = tuple[str, str]  # module, name


@dataclass(frozen=True)
class Module:
    """A parsed module: what it defines, and what its names mean elsewhere."""

    name: str
    functions: Mapping[str, ast.FunctionDef]
    imported: Mapping[str, FunctionId]


def module_read(name: str, source: str) -> Module:
    tree = ast.parse(source)
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return Module(name=name, functions=functions, imported=imported)


def silent_functions(modules: Mapping[str, Module]) -> set[FunctionId]:
    """Public functions with a parameter `actor` that do not ask on every way through them."""
    asking = _asking(modules)
    return {
        (module.name, name)
        for module in modules.values()
        for name, function in module.functions.items()
        if not name.startswith("_") and "actor" in _parameters(function) and (module.name, name) not in asking
    }


def _asking(modules: Mapping[str, Module]) -> set[FunctionId]:
    calls = {
        (module.name, name): {module.imported.get(called, (module.name, called)) for called in _called(function.body)}
        for module in modules.values()
        for name, function in module.functions.items()
    }
    asking = {one for one, called in calls.items() if any(name in ASKING for _, name in called)}
    while more := {one for one, called in calls.items() if called & asking} - asking:
        asking |= more
    return asking


def _parameters(function: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}


def _called(body: list[ast.stmt]) -> Iterator[str]:
    """Names of what is called for certain: not in a branch, a loop, a handler or a function within."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _called(statement.body)
        elif isinstance(statement, ast.Try):
            yield from _called([*statement.body, *statement.finalbody])
        elif isinstance(statement, (ast.If, ast.While)):
            yield from _names(statement.test)
        elif isinstance(statement, ast.For):
            yield from _names(statement.iter)
        elif not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield from _names(statement)


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Lambda, ast.IfExp, ast.BoolOp)):
        return  # may not be run
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node.func, ast.Attribute):
            yield node.func.attr
    for child in ast.iter_child_nodes(node):
        yield from _names(child)
