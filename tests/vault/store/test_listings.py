"""The rows of the catalogue: who reads them, who writes them, and what they repeat."""

import psycopg
import pytest

from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.governance.tables import become
from tests.vault.api.contract import Contract
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, offer_pack, pack_of, publish_version

ROWS = b"SELECT name FROM vault_listing"


@pytest.fixture
def adam(world: World) -> Contract:
    """Another admin of acme."""
    return Contract(key=person_add(world.acme, "adam@acme.example", RoleName.ADMIN).key.text)


def titles(client: Contract, asked: str = "") -> list[str]:
    return [publication["title"] for publication in client.get(f"publications/{asked}").json["results"]]


def rows_of_other(world: World, app: psycopg.Connection) -> list[tuple[str]]:
    with app.transaction():
        become(app, world.other.id)
        return app.execute(ROWS).fetchall()


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"visibility": "tenant"}, 0),
        ({"visibility": "tenants", "tenants": ["acme"]}, 0),
        ({"visibility": "tenants", "tenants": ["other"]}, 1),
        ({"visibility": "installation"}, 1),
    ],
)
def test_raw_sql_shows_rows_that_are_offered_to_the_tenant(
    fields: dict[str, object], count: int, world: World, olivia: Contract, app_connection: psycopg.Connection
) -> None:
    made = publish_version(olivia, build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0])), **fields)
    assert len(rows_of_other(world, app_connection)) == count
    assert olivia.post(f"packs/{made['pack']}/versions/1.0.0/yank/", {"reason": "Wrong."}).status == 200
    assert rows_of_other(world, app_connection) == []


def test_row_offered_to_all_is_shown_to_nobody_without_a_tenant(
    olivia: Contract, app_connection: psycopg.Connection
) -> None:
    offer_pack(olivia, TEXTS[0])
    assert app_connection.execute(ROWS).fetchall() == []


@pytest.mark.parametrize("change", ["UPDATE vault_listing SET title = 'mine'", "DELETE FROM vault_listing"])
def test_offered_row_is_written_by_its_publisher_only(
    change: str, world: World, olivia: Contract, app_connection: psycopg.Connection
) -> None:
    offer_pack(olivia, TEXTS[0])
    with app_connection.transaction():
        become(app_connection, world.other.id)
        assert app_connection.execute(change.encode()).rowcount == 0


def test_wider_visibility_that_waits_for_approval_shows_nothing(
    olivia: Contract, adam: Contract, charlie: Contract
) -> None:
    pack, ids = pack_of(olivia), memories_of(olivia, *TEXTS)
    publish_version(olivia, build_version(olivia, pack, ids[:1]), visibility="tenant")
    waiting = publish_version(olivia, build_version(olivia, pack, ids, "1.1.0"))
    assert (waiting["version"], waiting["waiting"]) == ("1.0.0", "1.1.0")
    assert titles(charlie) == []
    assert olivia.post(f"packs/{pack}/versions/1.0.0/yank/", {"reason": "Wrong."}).status == 200
    assert titles(charlie) == []


def test_changed_texts_of_a_pack_are_listed_at_once(olivia: Contract, charlie: Contract) -> None:
    made = offer_pack(olivia, TEXTS[0])
    pack = olivia.get("packs/").json["results"][0]["id"]
    changes = {"title": "Wading birds", "keywords": ["Moor"]}
    assert olivia.patch(f"packs/{pack}/", changes).status == 200
    assert titles(charlie, "?q=moor+WADING") == ["Wading birds"]
    assert charlie.get(f"publications/{made}/").json["keywords"] == ["Moor"]
