"""Production code uses the public names of libraries: no `._name` of an object that is not its own."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("governance", "vault", "memos_web", "benchmarks", "scripts")
# Documented by Django and Python in spite of the underscore.
PUBLIC = frozenset({"_meta", "_default_manager", "_state", "_asdict", "_replace", "_exit"})


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def own_names(tree: ast.AST) -> set[str]:
    """The functions, classes, fields and attributes that a module defines."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}:
            names.add(node.attr)
    return names


def foreign_private_names(source: str) -> list[str]:
    """The private names that a module takes from elsewhere: attributes, imports, and names given to `getattr`."""
    tree = ast.parse(source)
    own, names = own_names(tree), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in {"self", "cls", "super()"}:
            names.append(node.attr)
        elif isinstance(node, ast.ImportFrom):
            names += [part for part in [*(node.module or "").split("."), *(alias.name for alias in node.names)] if part]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"getattr", "setattr", "hasattr"}:
            names += [
                part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
    return sorted({name for name in names if is_private(name) and name not in own})


@pytest.mark.parametrize("package", PACKAGES)
def test_package_uses_no_private_name_of_another(package: str) -> None:
    used = {
        str(path.relative_to(ROOT)): names
        for path in (ROOT / package).rglob("*.py")
        if "migrations" not in path.parts and (names := foreign_private_names(path.read_text(encoding="utf-8")))
    }
    assert used == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("request._request.user", ["_request"]),
        ("getattr(request, '_user', None)", ["_user"]),
        ("from library import _inner", ["_inner"]),
        ("from library._inner import part", ["_inner"]),
        ("model._meta.fields", []),
        ("class Own:\n    _part: int\n\ndef of(own: Own) -> int:\n    return own._part", []),
    ],
)
def test_private_name_of_a_library_is_listed(source: str, names: list[str]) -> None:
    assert foreign_private_names(source) == names
