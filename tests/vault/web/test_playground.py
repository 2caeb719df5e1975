"""The playground: one query under two settings, changing nothing and showing nothing that its reader may not see."""

from collections.abc import Callable
from html import unescape

import psycopg
import pytest

from tests.factories import World
from tests.governance.web.visitors import signed_in, statements
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def ids(world: World) -> list[str]:
    items = [
        {"content": "Ana drinks green tea.", "namespace": "/team"},
        {"content": "Green tea is sold in Lisbon; tea, tea, tea.", "namespace": "/team"},
        {"content": "Alice hides the green tea."},
    ]
    reply = world.client("alice").post("memories/bulk/", {"items": items})
    run_jobs()
    return [row["memory"]["id"] for row in reply.json["results"]]


def page_of(world: World, name: str, asked: str) -> str:
    response = signed_in(world.person(name)).get(f"/memories/playground/{asked}")
    assert response.status_code == 200, response.content
    return unescape(response.content.decode())


def test_both_settings_show_the_parts_of_their_scores(world: World, ids: list[str]) -> None:
    page = page_of(world, "bob", "?q=Ana+tea&b_entity=0&b_lexical=1")
    assert page.count(f'href="/memories/{ids[0]}/"') == 2
    assert "People and names" in page
    assert 'name="b_entity" value="0.00"' in page
    assert ids[2] not in page
    assert page_of(world, "alice", "?q=green+tea").count(f'href="/memories/{ids[2]}/"') == 2


def test_a_weight_of_nothing_finds_nothing(world: World, ids: list[str]) -> None:
    nothing = "&".join(f"b_{part}=0" for part in ("lexical", "context", "session", "dense", "entity", "time"))
    page = page_of(world, "bob", f"?q=tea&{nothing}")
    assert page.count(f'href="/memories/{ids[0]}/"') == 1
    assert "No memory matches" in page


def test_searches_are_audited_and_no_use(world: World, ids: list[str], superuser: Superuser) -> None:
    page_of(world, "bob", "?q=tea&b_dense=0.5")
    run_jobs()
    searched = "SELECT count(*) FROM governance_auditentry WHERE verb = 'memory.searched'"
    assert superuser().execute(searched).fetchone() == (2,)
    assert superuser().execute("SELECT count(*) FROM vault_cubeuse").fetchone() == (0,)


@pytest.mark.parametrize("asked", ["?q=tea&a_dense=2", "?q=tea&b_time=soon", f"?q={'a' * 1001}"])
def test_a_weight_that_cannot_be_tried_is_refused(world: World, asked: str) -> None:
    assert 'role="alert"' in page_of(world, "bob", asked)


def test_strangers_and_auditors_find_nothing(world: World, ids: list[str]) -> None:
    assert all(memory_id not in page_of(world, "charlie", "?q=tea") for memory_id in ids)
    assert signed_in(world.ada).get("/memories/playground/?q=tea").status_code == 403


def test_two_searches_cost_few_statements(world: World, ids: list[str]) -> None:
    client, address = signed_in(world.olivia), "/memories/playground/?q=tea&b_dense=0.4"
    client.get(address)  # finds what a process keeps
    found = statements(client, address)
    assert len(found) <= 20, "\n".join(" ".join(item.split())[:120] for item in found)
