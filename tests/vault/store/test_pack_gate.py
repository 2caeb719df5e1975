"""No path gives a word of a pack that its contract does not open. charlie publishes, olivia's acme subscribes.

The text of the pack has a word that no other text has. Every address that answers GET, and what POST answers with
words, is asked for as the owner of acme, by key and in a browser.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

import psycopg
import pytest
from asgiref.sync import async_to_sync

from governance.database import acting
from governance.trace import work_begins
from tests.factories import World, client_for, database_time
from tests.governance.mutants import mutant
from tests.governance.tenant_crossings import API, OTHERS, PARAMETER, TABLES, routes
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import build_version, memories_of, pack_of, publish_version, subscribe
from vault.cubes import reader_words
from vault.models import CubeVersion
from vault.vocabulary import Source

CANARY = "quillwort"
MONTHS = ("May", "June", "July", "August", "October", "March")
TEXTS = tuple(f"The {CANARY} of pond {number} flowers in {month}." for number, month in enumerate(MONTHS))
PLACE = "/packs/other/ferns"
QUESTION = "When does the plant of the pond flower?"
Superuser = Callable[[], psycopg.Connection]
# A publisher shows samples to everybody who finds the pack, and a trial shows a bounded share.
SAMPLES = {
    f"{API}publications/<uuid:publication_id>/",
    "store/<slug:publisher>/<slug:name>/",
    "store/<slug:publisher>/<slug:name>/try/",
}
QUERY = "?as_of={as_of}&namespace={place}&version=1.1.0&before=1&after=1&q=plant"
API_QUERIES = (
    "memories/?namespace=" + PLACE,
    "memories/<uuid:memory_id>/diff/?from=1&to=1",
    "namespaces/<uuid:namespace_id>/?as_of={as_of}",
    "reviews/?status=open",
)


@dataclass(frozen=True)
class Installed:
    """A pack of two versions of which acme has the first, mounted in a conversation whose answer quotes it."""

    ids: dict[str, str]
    memory: str
    contract: str
    subscription: str

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Every route that ends its answer, and those of pages with what they may be asked for."""
        for route in sorted(set(routes())):
            if route in SAMPLES or re.search("sign-|<path:|stream|events", route):
                continue
            yield route, self.fill(route)
            if not route.startswith(API):
                yield route, self.fill(route + QUERY)
        for route in API_QUERIES:
            yield API + route, self.fill(API + route)

    def fill(self, route: str) -> str:
        address = PARAMETER.sub(lambda found: self.ids.get(found[1], "0"), route)
        return "/" + address.format(as_of=self.ids["as_of"], place=PLACE)


@pytest.fixture
def installed(world: World, olivia: Contract, charlie: Contract, superuser: Superuser) -> Installed:
    pack = pack_of(charlie, "ferns")
    ids = memories_of(charlie, *TEXTS)
    publication = publish_version(charlie, build_version(charlie, pack, ids), terms={"reads": 10_000})["id"]
    made = subscribe(olivia, publication, range="1.0.0")
    (new,) = memories_of(charlie, f"The {CANARY} of the lake is rare.")
    publish_version(charlie, build_version(charlie, pack, [*ids, new], "1.1.0"), terms={"reads": 10_000})
    run_jobs()
    olivia.patch(f"subscriptions/{made['id']}/", {"range": "*"})
    conversation = olivia.post("conversations/", {}).json["id"]
    assert olivia.post("mounts/", {"namespace": PLACE, "conversation": conversation}).status == 201
    turn = olivia.post(f"conversations/{conversation}/turns/", {"content": QUESTION})
    assert CANARY in turn.body.decode()
    schedule = olivia.post("schedules/", {"kind": "summaries.write", "cron": "0 6 * * *"})
    assert olivia.post(f"schedules/{schedule.json['id']}/run/", {}).status == 202
    export = olivia.post("exports/", {}).json["job"]["id"]
    run_jobs()
    (agreed,) = charlie.get("contracts/").json["results"]
    memory = olivia.search("pond", namespaces=[PLACE])[0]["id"]
    with superuser() as database:
        found = {name: _first(database, table, world.olivia.actor.tenant_id) for name, table in TABLES.items()}
    found |= {name: found.get(value, value) for name, value in OTHERS.items()}
    found |= {
        "memory_id": memory,
        "object_id": memory,
        "conversation_id": conversation,
        "namespace_id": made["namespace"]["id"],
        "subscription_id": made["id"],
        "job_id": export,
        "export_id": export,
        "publisher": "other",
        "name": "ferns",
        "form": "jsonl",
        "as_of": quote(database_time(world)),
    }
    return Installed(found, memory, agreed["id"], made["id"])


def _first(database: psycopg.Connection, table: str, tenant_id: UUID) -> str:
    row = database.execute(f"SELECT id FROM {table} WHERE tenant_id = %s LIMIT 1".encode(), [tenant_id]).fetchone()
    return str(row[0]) if row else str(UUID(int=0))


async def _read_whole(response: Any) -> bytes:
    return b"".join([part async for part in response])


def read_body(response: Any) -> bytes:
    if not response.streaming:
        return bytes(response.content)
    content = response.streaming_content
    return async_to_sync(_read_whole)(content) if hasattr(content, "__aiter__") else b"".join(content)


def find_leaks(world: World, installed: Installed, among: frozenset[str] | None = None) -> set[str]:
    """The routes whose answer has a word of the pack. among: only these are asked for; None: all."""
    browser, client = signed_in(world.olivia), client_for(world.olivia.key.text)
    leaks: set[str] = set()
    for route, address in installed.addresses():
        if among is not None and route not in among:
            continue
        if route.startswith(API):
            body = client.get(address.removeprefix("/" + API)).body
        else:
            body = read_body(browser.get(address))
        if CANARY.encode() in body:
            leaks.add(route)
    return leaks | find_leaks_of_posts(client, installed)


def find_leaks_of_posts(client: Any, installed: Installed) -> set[str]:
    ids = installed.ids
    asked = {"query": "pond flowers", "namespaces": [PLACE]}
    conversation = f"conversations/{ids['conversation_id']}/"
    posts: dict[str, dict[str, Any]] = {
        "memories/search/": asked,
        "memories/context/": asked,
        f"{conversation}turns/": {"content": QUESTION},
        f"subscriptions/{installed.subscription}/upgrade/?dry_run=true": {"version": "1.1.0"},
        f"memories/{installed.memory}/copy/": {"namespace": "/mine"},
        f"memories/{installed.memory}/split/": {"parts": ["one", "two"]},
        f"memories/{installed.memory}/promote/": {},
    }
    return {address for address, body in posts.items() if CANARY.encode() in client.post(address, body).body}


def use_up(superuser: Superuser) -> None:
    with superuser() as database:
        database.execute("UPDATE vault_subscription SET quota = used, period_from = now()")


def test_closed_pack_is_given_by_no_path(
    world: World, charlie: Contract, installed: Installed, superuser: Superuser
) -> None:
    """Open, at a quota of 0, and revoked while no worker runs."""
    leaks = find_leaks(world, installed)
    for route in (
        f"{API}memories/<uuid:memory_id>/",
        f"{API}memories/<uuid:memory_id>/versions/",
        f"{API}conversations/<uuid:conversation_id>/turns/",
        f"{API}namespaces/<uuid:namespace_id>/summary/",
        "namespaces/<uuid:namespace_id>/past/",
        "memories/<uuid:memory_id>/",
        "store/subscriptions/<uuid:subscription_id>/upgrade/",
        "memories/search/",
        "memories/context/",
    ):
        assert route in leaks, sorted(leaks)
    assert not {route for route in leaks if "export" in route or "exchange" in route}

    use_up(superuser)
    assert find_leaks(world, installed, frozenset(leaks)) == set()

    with superuser() as database:
        database.execute("UPDATE vault_subscription SET quota = NULL")
    assert find_leaks(world, installed, frozenset(leaks)) == leaks
    assert charlie.post(f"contracts/{installed.contract}/revoke/", {"reason": "Unpaid."}).status == 200
    with superuser() as database:
        row = database.execute("SELECT count(*) FROM vault_cube WHERE source = 'pack'").fetchone()
    assert row == (len(TEXTS),)  # no job has removed them
    assert find_leaks(world, installed, frozenset(leaks)) == set()


@pytest.mark.full
def test_mutant_of_the_gate_opens_what_is_closed(world: World, installed: Installed, superuser: Superuser) -> None:
    use_up(superuser)
    cases = (
        ("closed.isdisjoint(version.packs)", "closed.isdisjoint(version.packs)", 0),  # as it is
        ("if is_shown else frozenset()", "if False else frozenset()", len(TEXTS)),  # asks nobody
        ("if closed.isdisjoint(version.packs)", "if True", len(TEXTS)),  # does not listen
    )
    actor = world.olivia.actor
    for old, new, opened in cases:
        work_begins("a call of its own")
        module = mutant(reader_words, old, new)
        with acting(actor):
            rows = list(CubeVersion.objects.filter(cube__source=Source.PACK))
            words = module.open_for_reader(actor, module.seal_versions(actor, rows))
        assert sum(CANARY in text.content for text in words.values()) == opened, new
