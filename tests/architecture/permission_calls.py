"""Search of the source for functions that ask for permission, themselves or by a function that they call."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

ASKING = frozenset({"authorize", "visible_to"})
FunctionId = tuple[str, str]  # module, name
Call = tuple[str, int]  # what is called, with how many arguments


@dataclass(frozen=True)
class Module:
    """A parsed module: what it defines, and what its names mean elsewhere."""

    name: str
    functions: Mapping[str, ast.FunctionDef]
    imported: Mapping[str, FunctionId]


def read_module(name: str, source: str) -> Module:
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
    """Public functions that act for someone or for a tenant and do not ask on every way through them."""
    return _public(modules, {"actor", "tenant_id"}) - _find_asking(modules, lambda name, _: name in ASKING)


def untargeted_functions(modules: Mapping[str, Module]) -> set[FunctionId]:
    """Public functions that act on the one object whose id they get, and do not ask about just that object."""
    named = {
        (module, name)
        for module, name in _public(modules, {"actor"})
        if any(_names_an_object(parameter) for parameter in _parameters(modules[module].functions[name]))
    }
    return named - _find_asking(
        modules, lambda name, count: name == "visible_to" or (name == "authorize" and count > 2)
    )


def _names_an_object(parameter: str) -> bool:
    return parameter.endswith("_id") and parameter not in {"tenant_id", "request_id"}


def _public(modules: Mapping[str, Module], wanted: set[str]) -> set[FunctionId]:
    return {
        (module.name, name)
        for module in modules.values()
        for name, function in module.functions.items()
        if not name.startswith("_") and wanted & _parameters(function)
    }


def _find_asking(modules: Mapping[str, Module], asks: Callable[[str, int], bool]) -> set[FunctionId]:
    calls: dict[FunctionId, set[FunctionId]] = {}
    asking: set[FunctionId] = set()
    for module in modules.values():
        for name, function in module.functions.items():
            called = set(_list_calls(function.body))
            calls[(module.name, name)] = {module.imported.get(callee, (module.name, callee)) for callee, _ in called}
            if any(asks(*callee) for callee in called):
                asking.add((module.name, name))
    while more := {caller for caller, called in calls.items() if called & asking} - asking:
        asking |= more
    return asking


def _parameters(function: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}


def _list_calls(body: list[ast.stmt]) -> Iterator[Call]:
    """Yield the calls that always run: not in a branch, a loop, a handler or a nested function."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _list_calls(statement.body)
        elif isinstance(statement, ast.Try):
            yield from _list_calls([*statement.body, *statement.finalbody])
        elif isinstance(statement, (ast.If, ast.While)):
            yield from _names(statement.test)
        elif isinstance(statement, ast.For):
            yield from _names(statement.iter)
        elif not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield from _names(statement)


def _names(node: ast.AST) -> Iterator[Call]:
    if isinstance(node, (ast.Lambda, ast.IfExp, ast.BoolOp)):
        return  # may not be run
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            yield node.func.id, len(node.args) + len(node.keywords)
        elif isinstance(node.func, ast.Attribute):
            yield node.func.attr, len(node.args) + len(node.keywords)
    for child in ast.iter_child_nodes(node):
        yield from _names(child)
