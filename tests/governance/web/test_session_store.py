"""Sessions in the database say nothing to whoever reads the table."""

import pytest
from django.contrib.sessions.models import Session

from governance.web.session_store import SessionStore
from tests.harness.databases import Clone

pytestmark = pytest.mark.usefixtures("database")


def _store_session() -> SessionStore:
    store = SessionStore()
    store["member_id"] = "a-member-of-some-tenant"
    store.save()
    return store


def test_the_cookie_opens_what_was_stored() -> None:
    assert SessionStore(_store_session().session_key)["member_id"] == "a-member-of-some-tenant"


def test_neither_key_nor_data_can_be_read_from_the_table(database: Clone) -> None:
    key = _store_session().session_key
    with database.connect("postgres") as superuser:
        rows = superuser.execute("SELECT session_key, session_data FROM django_session").fetchall()
    assert len(rows) == 1
    assert key is not None
    assert key not in str(rows)
    assert "member" not in str(rows)


def test_what_stands_in_the_table_is_no_cookie() -> None:
    _store_session()
    row = Session.objects.get()
    assert "member_id" not in SessionStore(row.session_key)


def test_data_of_another_session_does_not_open() -> None:
    first, second = _store_session(), _store_session()
    rows = {row.session_key: row for row in Session.objects.all()}
    left, right = rows.values()
    left.session_data, right.session_data = right.session_data, left.session_data
    left.save()
    assert [key for key in (first, second) if "member_id" in SessionStore(key.session_key)] != [first, second]


def test_deleted_session_is_not_loaded() -> None:
    store = _store_session()
    key = store.session_key
    store.delete()
    assert "member_id" not in SessionStore(key)
    assert not Session.objects.exists()


@pytest.mark.parametrize("key", ["\x00\x00aaaaaaaa", "x" * 5000, "\ud800aaaaaaaa"])
def test_an_odd_cookie_is_nobodys(key: str) -> None:
    assert "member_id" not in SessionStore(key)
