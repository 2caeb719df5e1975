"""The other tenant learns nothing by any address of access: its ids are like ids that never were."""

import re
from collections.abc import Callable

import psycopg
import pytest

from governance.api.access_urls import urlpatterns as api
from governance.web.urls import urlpatterns as web
from tests.factories import API, ApiReply, World
from tests.governance.access.grants.test_grants import _but_denials
from tests.governance.filled_tenants import Filled, fill
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import MISSING, Contract

pytestmark = pytest.mark.full

Superuser = Callable[[], psycopg.Connection]
CANARY = "nightingale"
OURS = {str(route.pattern) for route in web if re.match(r"access|personas|presets", str(route.pattern))}
METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE")


@pytest.fixture
def filled_tenant(world: World) -> Filled:
    return fill(world.olivia, CANARY)


def ids_of(database: psycopg.Connection) -> list[str]:
    """One id of each table that an address of access may name."""
    tables = ("vault_cubegrant", "vault_namespacegrant", "governance_persona", "governance_roletemplate", "vault_cube")
    rows = [database.execute(f"SELECT id::text FROM {table} LIMIT 1".encode()).fetchone() for table in tables]
    return [row[0] for row in rows if row is not None]


def address(route: str, identifier: str) -> str:
    return re.sub(r"<slug:\w+>", "memory", re.sub(r"<uuid:\w+>", identifier, route))


def unread(database: psycopg.Connection) -> dict[str, list[str]]:
    """All rows but those that tell what was read: one's own lists are."""
    return {table: rows for table, rows in _but_denials(read_all_rows(database)).items() if "audit" not in table}


def comparable_reply(reply: ApiReply, identifier: str) -> tuple[int, str]:
    """Return the reply without the ids of the request and of the requested object."""
    return reply.status, re.sub(r'"request_id":"[^"]*"', "", reply.body.decode()).replace(identifier, "")


def test_by_no_address_of_the_api(world: World, filled_tenant: Filled, charlie: Contract, superuser: Superuser) -> None:
    database = superuser()
    before = unread(database)
    for route in sorted(str(pattern.pattern) for pattern in api):
        for method in METHODS:
            for identifier in ids_of(database):
                body = {"object": {"type": "memory", "id": identifier}, "kind": "member", "id": identifier}
                asked = API + address(route, identifier)
                reply = charlie.send(method, asked, None if method in {"GET", "DELETE"} else body)
                assert CANARY not in reply.body.decode(), (method, asked)
                if "<uuid" in route:
                    nowhere = charlie.send(
                        method, API + address(route, str(MISSING)), None if method in {"GET", "DELETE"} else body
                    )
                    assert comparable_reply(reply, identifier) == comparable_reply(nowhere, str(MISSING)), (
                        method,
                        asked,
                    )
    assert unread(database) == before


def test_by_no_page(world: World, filled_tenant: Filled, superuser: Superuser) -> None:
    database, browser = superuser(), signed_in(world.charlie)
    before = unread(database)
    assert len(OURS) == 11
    for route in sorted(OURS):
        for identifier in ids_of(database):
            for send in (browser.get, browser.post):
                response = send(f"/{address(route, identifier)}")
                assert CANARY not in response.content.decode(), route
                if "<uuid" in route:
                    assert response.status_code in {404, 405}, route
    assert unread(database) == before
