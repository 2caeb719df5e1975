"""The first page: numbers that lead to their rows, what waits, and what was done."""

from html import unescape

from tests.factories import World
from tests.governance.web.visitors import signed_in, statements
from tests.vault.outbox import run_jobs
from vault.overview.counts import counts_ask


def add_memories(world: World) -> str:
    reply = world.client("alice").post(
        "memories/", {"content": "Write to ana@example.org.", "namespace": "/team", "ttl_seconds": 86_400}
    )
    assert reply.status == 201
    world.client("alice").post("memories/search/", {"query": "Ana"})
    run_jobs()
    counts_ask()
    run_jobs()
    return str(reply.json["results"][0]["id"])


def page_of(world: World, name: str, address: str = "/overview/") -> str:
    response = signed_in(world.person(name)).get(address)
    assert response.status_code == 200, response.content
    return unescape(response.content.decode())


def test_numbers_lead_to_their_rows_and_waiting_work_to_its_page(world: World) -> None:
    memory_id = add_memories(world)
    page = page_of(world, "alice")
    for shown in (
        '<a class="tile" href="/memories/">',
        "100.0 %",
        'href="/memories/?order=expiring" aria-label="Check: 1 memory expires in 7 days"',
        'href="/reviews/" aria-label="Review: 1 review waits"',
        'href="/memories/?namespace=/team"',
        f'<a href="/memories/{memory_id}/">added 1 memory</a>',
        'href="/memories/?layer=',
    ):
        assert shown in page
    assert "Storage" not in page
    assert "Audit log" not in page


def test_owners_see_storage_and_the_log_and_others_nothing_of_it(world: World) -> None:
    add_memories(world)
    page = page_of(world, "olivia", "/overview/?days=90&group=state")
    for shown in ("Storage", "Model tokens", "Audit log", "Memories by state", "Open the audit log"):
        assert shown in page
    assert "added 1 memory" not in page_of(world, "bob")
    stranger = page_of(world, "charlie")
    assert "/team" not in stranger
    assert "No memories yet" in stranger
    assert signed_in(world.ada).get("/overview/").status_code == 403


def test_before_the_first_count_the_page_says_so(world: World) -> None:
    world.client("olivia").post("memories/", {"content": "The heron nests by the weir.", "namespace": "/team"})
    page = page_of(world, "olivia")
    assert "Nothing is counted yet" in page
    assert "Reviews waiting" in page
    assert "Searches answered" not in page, "a number that nobody has counted is not told as 0"
    assert "Storage" not in page


def test_the_overview_costs_few_statements(world: World) -> None:
    memory = add_memories(world)
    world.client("alice").post("memories/", {"content": "The heron nests by the weir.", "namespace": "/team"})
    grant = {"principal": {"kind": "member", "id": str(world.bob.member.id)}, "effect": "deny", "action": "read"}
    hidden = {"object": {"type": "memory", "id": memory}}
    assert world.client("olivia").post("grants/", grant | hidden).status == 201
    for name in ("olivia", "alice", "bob"):
        assert len(statements(signed_in(world.person(name)), "/overview/")) <= 19, name
    page = page_of(world, "bob")
    assert "that you may read and that still exist" in page
    assert "Memories by layer over 30 days" in page


def test_the_bell_counts_what_its_reader_may_solve(world: World) -> None:
    add_memories(world)
    client = signed_in(world.alice)
    assert '<b class="bell-count num">2</b>' in client.get("/notices/", headers={"hx-request": "true"}).content.decode()
    assert "1 review waits" in client.get("/notices/").content.decode()
    assert "bell-count" not in signed_in(world.bob).get("/notices/", headers={"hx-request": "true"}).content.decode()
    assert "Nothing waits for you." in page_of(world, "charlie", "/notices/")
