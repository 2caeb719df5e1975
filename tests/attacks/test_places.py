"""Rows 8, 11 and 13 and purpose binding over every place where content can appear: what is withdrawn shows nowhere."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from secrets import token_hex
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import URLResolver, path
from django.urls.resolvers import RegexPattern
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memos_web.config import LlmChoice
from tests.attacks.places import CONTENT, DECIDING, TRASH, Reader, list_unknown_addresses
from tests.factories import World
from tests.governance.access.decisions.test_mutants import replace_function
from tests.governance.access.grants.test_grants import give_grant
from tests.governance.tenant_crossings import routes
from tests.governance.web.visitors import signed_in
from tests.harness.evidence import Evidence
from tests.vault.api.contract import Contract, contract
from tests.vault.chat.test_model import PATH, make_stream
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import create_policy
from vault.content.drafts import CubeDraft, SourceRef
from vault.cubes.services import cubes_add
from vault.models.cube import CubeQuerySet
from vault.vocabulary import SourceKind

pytestmark = pytest.mark.full

Superuser = Callable[[], psycopg.Connection]
QUESTION = "Which animal guards the boathouse?"
WAYS = ("purge", "revoke", "expire", "delete", "redact", "purpose")  # a policy stays, so that it comes last
ROW = {8: ("purge", "redact", "delete"), 11: ("revoke", "purpose"), 13: ("expire",)}
ROUNDS_IN_FULL = 3
REPLAYS = "replays"


@pytest.fixture
def model(httpserver: HTTPServer) -> Iterator[HTTPServer]:
    """A model that repeats what it is told."""

    def handler(request: Request) -> Response:
        told = request.get_json()["messages"][-1]["content"]
        return make_stream(f"I was told: {told[:2000]} [1]")

    httpserver.expect_request(PATH).respond_with_handler(handler)
    with override_settings(MEMOS_LLM=LlmChoice(url=httpserver.url_for("/v1"), key="k", model="tiny")):
        yield httpserver


@dataclass
class Scene:
    """A message of alice's with a canary, and all that was made of it: sentences, a summary, answers to bob."""

    world: World
    root: psycopg.Connection
    canary: str
    people: dict[str, Contract]
    message: str
    grant: str
    ids: dict[str, list[str]]
    replays: tuple[tuple[str, str, dict[str, Any]], ...]  # who sent what, under the canary as Idempotency-Key

    def withdraw(self, way: str) -> None:
        alice, address = self.people["alice"], f"memories/{self.message}/"
        if way == "delete":
            assert alice.delete(address).status == 204
        elif way == "purge":
            assert alice.delete(f"{address}?purge=true").status == 204
        elif way == "redact":
            assert alice.post(f"{address}redact/", {"version": 1}).status == 200
        elif way == "expire":
            statement = "UPDATE vault_cube SET expires_at = clock_timestamp() WHERE id = %s"
            self.root.execute(statement, [self.message])
        elif way == "revoke":
            assert alice.delete(f"grants/{self.grant}/").status == 204
        else:
            where = {"tags": ["care"]}
            create_policy(self.people["olivia"], "purpose", {"where": where, "purposes": ["care"]}, name="care alone")

    def count_readings(self, who: str) -> tuple[dict[str, int], list[str], set[str]]:
        """By place: how many readings; those in which the canary stood; the routes that were read."""
        readings = list(self.readings(who))
        asked = Counter(route for route, _, _ in readings)
        return asked, [name for _, name, shows in readings if shows], {*asked} - {REPLAYS}

    def readings(self, who: str) -> Iterator[tuple[str, str, bool]]:
        """The route, the name, and whether the canary stood in what came back."""
        reader = Reader(self.people[who], signed_in(self.world.person(who)))
        for reading in reader.readings(self.ids, QUESTION):
            yield reading.route, f"{who}: {reading.name}", self.canary in reading.words()
        for sender, address, body in self.replays:
            if who == sender:
                repeated = self.people[who].post(address, body, idempotency_key=self.canary)
                yield REPLAYS, f"{who}: replay of {address}", self.canary in repeated.body.decode()


def scene(world: World, root: psycopg.Connection) -> Scene:
    canary = f"c{token_hex(6)}"
    people = {name: contract(world, name) for name in ("alice", "bob", "olivia")}
    alice, bob = people["alice"], people["bob"]
    said = f"I live in Lisbon now, for the work. My favourite animal that guards the boathouse is the {canary}."
    results = alice.post("memories/", {"messages": [{"role": "user", "content": said}], "tags": ["care"]}).json[
        "results"
    ]
    message, *derived = [memory["id"] for memory in results]
    assert derived
    source = SourceRef(UUID(message), 1, SourceKind.TEXT)
    summary = CubeDraft(f"In short, the animal is the {canary}.", namespace="/team", sources=(source,))
    summed = str(cubes_add(actor=world.alice.actor, drafts=[summary])[0].cube.id)
    grants = [give_grant(alice, world, "bob", "memory", id)["id"] for id in (message, *derived)]
    run_jobs()
    begun = [bob.post("conversations/", {"model": name}).json["id"] for name in ("extractive", "")]
    asked = f"conversations/{begun[1]}/turns/"
    assert bob.post(asked, {"content": QUESTION}, idempotency_key=canary).status == 201
    moved = f"memories/{summed}/move/"
    assert canary in alice.post(moved, {"namespace": "/team"}, idempotency_key=canary).json["content"]
    replays = (("bob", asked, {"content": QUESTION}), ("alice", moved, {"namespace": "/team"}))
    assert bob.post(f"conversations/{begun[0]}/turns/", {"content": QUESTION}).status == 201
    cubes = root.execute(
        "SELECT question_id::text, answer_id::text FROM vault_turn WHERE conversation_id = ANY(%s)", [begun]
    )
    chats = [id for pair in cubes for id in pair]
    turns = [str(id) for (id,) in root.execute("SELECT id FROM vault_turn WHERE conversation_id = ANY(%s)", [begun])]
    review = root.execute("SELECT id::text FROM vault_review LIMIT 1").fetchone()
    rows = root.execute("SELECT id FROM vault_namespace WHERE tenant_id = %s", [world.acme.id])
    namespace_ids = [id for (id,) in rows]
    homes = root.execute("SELECT path FROM vault_namespace WHERE tenant_id = %s", [world.acme.id])
    job = alice.post("memories/?async=true", {"content": "Nothing of note."}).json["job"]["id"]
    ids = {
        "memory_id": [message, *derived, summed, *chats],
        "conversation_id": begun,
        "segment_id": [str(id) for (id,) in root.execute("SELECT id FROM vault_segment")] or [str(uuid4())],
        "persona_id": [
            persona["id"] for who in (alice, bob) for persona in who.get("personas/?kind=user").json["results"]
        ],
        "turn_id": turns,
        "number": ["1"],
        "review_id": [review[0] if review else message],
        "job_id": [job],
        "namespace_id": [str(id) for id in namespace_ids],
        "place": [id for (id,) in homes],
    }
    return Scene(world, root, canary, people, message, grants[0], ids, replays)


def test_what_is_withdrawn_shows_in_no_place(
    world: World, model: HTTPServer, superuser: Superuser, full_size: bool, evidence: Evidence
) -> None:
    """The ways that are left out of the smaller run are those of test_copies_follow.py."""
    read: set[str] = set()
    for way in WAYS if full_size else WAYS[:2]:
        readings, readers = 0, ("bob",) if way in ROW[11] or not full_size else ("bob", "alice", "olivia")
        for _ in range(ROUNDS_IN_FULL if full_size and way != "purpose" else 1):
            made_now = scene(world, superuser())
            made_now.withdraw(way)
            for who in readers:
                asked, leaks, routes_read = made_now.count_readings(who)
                read |= routes_read
                assert [leak for leak in leaks if not _is_meant(way, who, leak)] == [], way
                readings += sum(asked.values())
        row = next(number for number, ways in ROW.items() if way in ways)
        figures = {"readings after it": readings, "places": len(CONTENT), "that showed a copy": 0}
        evidence(row=row, name=f"copies-after-{way}", figures=figures)
    assert read == CONTENT


def _is_meant(way: str, who: str, leak: str) -> bool:
    """Return whether the access is intended: members who may restore see trash, and members who decide see reviews."""
    place = leak.removeprefix(f"{who}: ")
    if who == "bob":
        return False
    return place in DECIDING or (place in TRASH and way == "delete")


def test_a_place_that_is_not_listed_shows() -> None:
    assert list_unknown_addresses(routes()) == []
    assert set(routes()) >= CONTENT

    def view(request: HttpRequest) -> HttpResponse:
        raise NotImplementedError

    more = URLResolver(RegexPattern("api/v1/"), [path("memories/<uuid:memory_id>/summary/", view)])
    assert list_unknown_addresses(routes(more)) == ["memories/<uuid:memory_id>/summary/"]


MUTANTS: list[tuple[str, Any]] = [
    ("answers and derived texts", (CubeQuerySet, "resting_on", "Q(has_sources=False) |", "Q(pk__isnull=False) |")),
    ("the clock", (CubeQuerySet, "stored", ".filter(Q(expires_at=None) | Q(expires_at__gt=Now()))", "")),
]


@pytest.mark.parametrize(("name", "change"), MUTANTS)
def test_a_reader_that_forgets_what_was_withdrawn_shows(
    world: World, model: HTTPServer, superuser: Superuser, name: str, change: Any
) -> None:
    made_now = scene(world, superuser())
    made_now.withdraw("expire")
    with replace_function(*change):
        assert any(shows for _, _, shows in made_now.readings("bob")), name
