"""Both kinds of place of a key store."""

from pathlib import Path

import pytest

from governance.keys.places import PostgresPlace


@pytest.fixture(params=["file", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path | str:
    """The place of a test's key store: each kind passes the same tests. PostgreSQL is asked at each call."""
    if request.param == "file":
        return tmp_path / "keys" / "keystore.sqlite3"
    monkeypatch.setattr(PostgresPlace, "mark_seconds", 0.0)
    url: str = request.getfixturevalue("key_store_url")
    return url
