"""Tests of the cached files of the tests' PostgreSQL: when they are made anew."""

from pathlib import Path

import pytest

from tests.harness import clusters


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with a migration that imports a module, and a module that no migration imports."""
    monkeypatch.setattr(clusters, "ROOT", tmp_path)
    for name, text in {
        "vault/migrations/0001_initial.py": "from vault import words\n",
        "vault/words.py": "import governance.sql\n",
        "governance/sql.py": "GRANT = 'SELECT'\n",
        "vault/services.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "is_made_anew"),
    [
        ("vault/migrations/0001_initial.py", True),
        ("vault/migrations/0002_more.py", True),
        ("vault/words.py", True),
        ("governance/sql.py", True),
        ("deploy/roles.sql", True),
        ("vault/services.py", False),
    ],
)
def test_files_are_made_anew_if_what_migrates_them_changes(repository: Path, changed: str, is_made_anew: bool) -> None:
    before = clusters.digest()
    path = repository / changed
    path.parent.mkdir(exist_ok=True)
    path.write_text("CHANGED = True\n", encoding="utf-8")
    assert (clusters.digest() != before) is is_made_anew
