"""Every operation on one memory over REST: dry run, repeated call, stale version, undo, and who may not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from django.urls import URLPattern

from governance.api.views import ApiView
from governance.database import acting
from tests.factories import ApiReply, World
from tests.governance.tables import read_all_rows
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.api.urls import urlpatterns
from vault.models import Cube

Superuser = Callable[[], psycopg.Connection]
Ids = dict[str, str]
Prepare = Callable[[World, Contract, Ids], None]
TEXT, RIGHT = "The heron nests by the mill.", "The kingfisher nests by the mill."
LATER = "2099-01-31T00:00:00Z"
ONE, SEVERAL = '"7"', '"7-7"'  # versions that no memory has
A_READ = {"governance_auditentry", "governance_outboxevent"}
DENIALS = {"governance_auditentry", "governance_auditseal"}
TOLD_BY_A_READ = {"updated_at", "access_count", "last_accessed_at", "heat", "pending_embedding", "version"}


@dataclass(frozen=True)
class Undo:
    """The call that takes an operation back. made: its address names what the operation made."""

    address: str
    body: Mapping[str, Any] | None = None
    method: str = "POST"
    made: bool = False


@dataclass(frozen=True)
class Operation:
    """One call on `{id}`, a memory that everyone of the tenant reads.

    undo: the reason, where nothing takes it back. bob: the status for a reader. stale: an If-Match without a match.
    """

    name: str
    address: str
    body: Mapping[str, Any] | None
    undo: Undo | str
    prepare: Prepare = field(default=lambda world, alice, ids: None)
    method: str = "POST"
    status: int = 200
    bob: int = 403
    stale: str = ONE
    if_match: str = ""

    def send(self, client: Contract, ids: Ids, asked: str = "", **headers: str) -> ApiReply:
        if self.if_match and "if_match" not in headers:
            headers["if_match"] = self.if_match
        return client.send(self.method, self.address.format(**ids) + asked, _fill_ids(self.body, ids), **headers)

    @property
    def dry(self) -> str:
        return f"{'&' if '?' in self.address else '?'}dry_run=true"

    def __str__(self) -> str:
        return self.name


def activate(world: World, alice: Contract, ids: Ids) -> None:
    assert alice.post(f"memories/{ids['id']}/transition/", {"to": "activated"}).status == 200


def edit(world: World, alice: Contract, ids: Ids) -> None:
    assert alice.patch(f"memories/{ids['id']}/", {"content": RIGHT}, if_match='"1"').status == 200


def freeze(world: World, alice: Contract, ids: Ids) -> None:
    assert alice.post(f"memories/{ids['id']}/freeze/", {"reason": "An audit."}).status == 200


def fuse(world: World, alice: Contract, ids: Ids) -> None:
    reply = alice.post("memories/fuse/", {"ids": [ids["id"], ids["twin"]]})
    assert reply.status == 201
    ids["id"] = reply.json["id"]


def delete(world: World, alice: Contract, ids: Ids) -> None:
    assert alice.delete(f"memories/{ids['id']}/").status == 204


def expire(world: World, alice: Contract, ids: Ids) -> None:
    with acting(world.alice.actor):
        cube = Cube.objects.get(id=ids["id"])
        Cube.objects.filter(id=cube.id).update(expires_at=cube.created_at)


def feedback(kind: str, **more: Any) -> Operation:
    undo = Undo("memories/{id}/rollback/", {"version": 1})
    return Operation(f"feedback {kind}", "memories/{id}/feedback/", {"kind": kind}, undo, bob=202, **more)


OPERATIONS = [
    Operation(
        "edit",
        "memories/{id}/",
        {"content": RIGHT, "tags": ["bird"]},
        Undo("memories/{id}/rollback/", {"version": 1}),
        method="PATCH",
        if_match='"1"',
    ),
    Operation(
        "rollback",
        "memories/{id}/rollback/",
        {"version": 1},
        Undo("memories/{id}/rollback/", {"version": 2}),
        edit,
    ),
    Operation("redact", "memories/{id}/redact/", {"version": 1}, "the words are gone", edit),
    Operation(
        "move", "memories/{id}/move/", {"namespace": "/team/notes"}, Undo("memories/{id}/move/", {"namespace": "/team"})
    ),
    Operation(
        "copy",
        "memories/{id}/copy/",
        {"namespace": "/team/notes"},
        Undo("memories/{made}/", method="DELETE", made=True),
        status=201,
    ),
    Operation(
        "transition",
        "memories/{id}/transition/",
        {"to": "archived"},
        Undo("memories/{id}/transition/", {"to": "activated"}),
        activate,
    ),
    Operation("freeze", "memories/{id}/freeze/", {"reason": "An audit."}, Undo("memories/{id}/unfreeze/")),
    Operation(
        "unfreeze",
        "memories/{id}/unfreeze/",
        None,
        Undo("memories/{id}/freeze/", {"reason": "An audit."}),
        freeze,
    ),
    Operation(
        "promote",
        "memories/{id}/promote/",
        {"layer": "mid_term"},
        Undo("memories/{id}/promote/", {"layer": "long_term"}),
    ),
    Operation(
        "fuse",
        "memories/fuse/",
        {"ids": ["{id}", "{twin}"]},
        Undo("memories/{id}/unfuse/"),
        status=201,
        stale=SEVERAL,
    ),
    Operation(
        "split",
        "memories/{id}/split/",
        {"parts": ["The heron nests.", "It leaves."]},
        Undo("memories/{id}/unfuse/"),
        status=201,
    ),
    Operation("unfuse", "memories/{id}/unfuse/", {}, "the same memories are fused again", fuse),
    feedback("outdated"),
    feedback("sensitive"),
    Operation(
        "feedback wrong",
        "memories/{id}/feedback/",
        {"kind": "wrong", "correction": RIGHT},
        Undo("memories/{id}/rollback/", {"version": 1}),
        bob=202,
        if_match='"1"',
    ),
    Operation("feedback useful", "memories/{id}/feedback/", {"kind": "useful"}, "a use is counted", bob=200),
    Operation("delete", "memories/{id}/", None, Undo("memories/{id}/restore/", {}), method="DELETE", status=204),
    Operation("purge", "memories/{id}/?purge=true", None, "nothing is left", method="DELETE", status=204),
    Operation("restore", "memories/{id}/restore/", {}, Undo("memories/{id}/", method="DELETE"), delete),
    Operation("renew", "memories/{id}/restore/", {"expires_at": LATER}, "a new expiry ends it again", expire),
]
POSTS = [operation for operation in OPERATIONS if operation.method == "POST"]
UNDONE = [operation for operation in OPERATIONS if isinstance(operation.undo, Undo)]


def test_every_operation_on_a_memory_is_in_the_table() -> None:
    routes = {
        str(route.pattern).replace("<uuid:memory_id>", "{id}")
        for route in urlpatterns
        if isinstance(route, URLPattern) and str(route.pattern).startswith("memories/<uuid:memory_id>/")
        if _is_operation(route)
    }
    relations = {route for route in routes if "/relations/" in route}  # between memories, not an operation on one
    assert routes - relations | {"memories/fuse/"} == {operation.address.partition("?")[0] for operation in OPERATIONS}


@pytest.fixture
def ids(world: World, alice: Contract) -> Ids:
    """A memory and another one of the same place."""
    made = {name: str(alice.add(text, namespace="/team")["id"]) for name, text in (("id", TEXT), ("twin", RIGHT))}
    run_jobs()
    return made


@pytest.mark.sampled(5)
@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_dry_run_writes_nothing_of_what_the_call_at_the_present_version_then_does(
    world: World, alice: Contract, ids: Ids, superuser: Superuser, operation: Operation
) -> None:
    operation.prepare(world, alice, ids)
    before = rows(superuser())
    assert operation.send(alice, ids, operation.dry).status == 200
    after = rows(superuser())
    assert set(list_changed_tables(before, after)) <= (
        A_READ if operation.name == "fuse" else set()
    )  # its proposal is read
    with acting(world.alice.actor):
        present = Cube.objects.get(id=ids["id"]).version
    header = '"1-1"' if operation.stale == SEVERAL else f'"{present}"'
    assert operation.send(alice, ids, if_match=header).status == operation.status
    assert list_changed_tables(after, rows(superuser())) != []


@pytest.mark.sampled(5)
@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_stale_version_is_412_and_leaves_no_row(
    world: World, alice: Contract, ids: Ids, superuser: Superuser, operation: Operation
) -> None:
    operation.prepare(world, alice, ids)
    before = rows(superuser())
    for asked in ("", operation.dry):
        reply = operation.send(alice, ids, asked, if_match=operation.stale)
        assert (reply.status, reply.code) == (412, "version_conflict")
    assert list_changed_tables(before, rows(superuser())) == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize("operation", POSTS, ids=str)
def test_repeated_key_answers_the_first_reply_and_acts_once(
    world: World, alice: Contract, ids: Ids, superuser: Superuser, operation: Operation
) -> None:
    operation.prepare(world, alice, ids)
    first = operation.send(alice, ids, idempotency_key="once")
    assert first.status == operation.status, first
    before = rows(superuser())
    again = operation.send(alice, ids, idempotency_key="once")
    assert (again.status, again.json) == (first.status, first.json)
    assert set(list_changed_tables(before, rows(superuser()))) <= DENIALS  # the repeated reply is in the audit log


@pytest.mark.sampled(5)
@pytest.mark.parametrize("operation", UNDONE, ids=str)
def test_undo_gives_back_what_was(world: World, alice: Contract, ids: Ids, operation: Operation) -> None:
    operation.prepare(world, alice, ids)
    before = essence(alice, ids)
    done = operation.send(alice, ids)
    assert done.status == operation.status, done
    run_jobs()
    assert essence(alice, ids) != before
    undo = operation.undo
    assert isinstance(undo, Undo)
    named = {**ids, "made": done.json["id"]} if undo.made else ids
    reply = alice.send(undo.method, undo.address.format(**named), undo.body)
    assert reply.status in (200, 204), reply
    run_jobs()
    assert essence(alice, ids) == before


@pytest.mark.sampled(5)
@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_reader_is_refused_or_heard_and_a_stranger_finds_nothing(
    world: World,
    alice: Contract,
    bob: Contract,
    charlie: Contract,
    ids: Ids,
    superuser: Superuser,
    operation: Operation,
) -> None:
    operation.prepare(world, alice, ids)
    before = rows(superuser())
    for asked in ("", operation.dry):
        reply = operation.send(charlie, ids, asked)
        assert reply.status == 404, reply
    assert set(list_changed_tables(before, rows(superuser()))) <= DENIALS
    reply = operation.send(bob, ids)
    assert reply.status == operation.bob, reply
    written = set(list_changed_tables(before, rows(superuser()))) - DENIALS
    assert written <= ({"vault_review", "governance_outboxevent"} if operation.bob < 300 else set())


def rows(connection: psycopg.Connection) -> dict[str, Any]:
    return dict(read_all_rows(connection))


def list_changed_tables(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The tables whose rows differ."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def essence(alice: Contract, ids: Ids) -> Any:
    """The memories that there are, without counters: by id, or their status where they are not readable."""
    shown = alice.get("memories/?namespace=/team").json["results"]
    found = {row["id"]: {name: row[name] for name in set(row) - TOLD_BY_A_READ} for row in shown}
    for item in ids.values():
        reply = alice.get(f"memories/{item}/")
        found[item] = {name: reply.json[name] for name in set(reply.json) - TOLD_BY_A_READ - {"request_id"}}
    return found


def _fill_ids(value: Any, ids: Ids) -> Any:
    if isinstance(value, Mapping):
        return {name: _fill_ids(key, ids) for name, key in value.items()}
    if isinstance(value, list):
        return [_fill_ids(item, ids) for item in value]
    return value.format(**ids) if isinstance(value, str) else value


def _is_operation(route: URLPattern) -> bool:
    view: type[ApiView] = route.callback.view_class  # type: ignore[attr-defined]
    return any(hasattr(view, method) for method in ("post", "patch", "delete"))
