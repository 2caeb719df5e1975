"""Words for the facts of audit entries."""

import ast
from pathlib import Path

from governance.web.audit_facts import NAMES

PACKAGES = ("governance", "vault")


def list_details() -> set[str]:
    """Return the names of all facts that code writes as a literal `detail` of an audit entry."""
    calls = (
        node
        for package in PACKAGES
        for path in Path(package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "record"
    )
    values = (word.value for call in calls for word in call.keywords if word.arg == "detail")
    dicts = (value for value in values if isinstance(value, ast.Dict))
    return {str(key.value) for found in dicts for key in found.keys if isinstance(key, ast.Constant)}


def test_each_fact_of_an_audit_entry_has_a_name_for_readers() -> None:
    found = list_details()
    assert len(found) > 40
    assert found - set(NAMES) == set()
