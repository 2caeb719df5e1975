"""guardian is the base of the grant tables, and nothing else asks it anything."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = "governance/models/grant.py"


def test_only_the_base_of_grants_imports_it() -> None:
    importing = {
        str(path.relative_to(ROOT))
        for house in ("governance", "vault", "memos_web", "benchmarks")
        for path in (ROOT / house).rglob("*.py")
        if re.search(r"^\s*(?:from|import) guardian\b", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    assert importing == {BASE}
