"""The id of what a colleague keeps private is answered like one that never was, on every address that takes an id."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from governance.access.decisions import services
from governance.database import acting
from governance.errors import NotFound
from governance.models import AuditEntry
from governance.vocabulary import Outcome, RoleName, Scope
from tests.factories import ApiReply, World, key_for, person_add
from tests.governance.tenant_crossings import routes
from tests.governance.web.visitors import signed_in
from tests.mem0.test_rights import sent
from tests.vault.api.contract import Contract, contract
from tests.vault.cubes.test_query_counts import count_queries
from vault.cubes import lookup

UNKNOWN = UUID("019f0000-0000-7000-8000-00000000abcd")
PLACEHOLDER = re.compile(r"<(\w+):(\w+)>")
CHANGING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[A-Za-z0-9]{64}|nonce-[\w+/=-]+|\"request_id\": ?\"[^\"]*\"")
KINDS = ("memory_id", "persona_id", "conversation_id")


def addresses(kind: str, own: str) -> list[str]:
    """Every address of pages and API that has this id, and no other than of something that is part of it."""

    def fill(part: re.Match[str]) -> str:
        return own if part[2] == kind else {"uuid": str(UNKNOWN), "int": "1"}.get(part[1], "x")

    found = []
    for route in routes():
        names = {name for _, name in PLACEHOLDER.findall(route)}
        if kind in names and not any(name in KINDS for name in names if name != kind):
            found.append(PLACEHOLDER.sub(fill, route))
    return found


def create_private_objects(world: World) -> dict[str, str]:
    """Create a memory, a persona and a conversation that are private to alice."""
    alice = contract(world, "alice")
    return {
        "memory_id": alice.add("The canary sleeps at noon.")["id"],
        "persona_id": alice.post("personas/", {"name": "at night"}).json["id"],
        "conversation_id": alice.post("conversations/", {"title": "Canaries"}).json["id"],
    }


def answers(client: Contract, browser: Client, address: str) -> Iterator[tuple[str, int, str]]:
    if address.startswith("api/v1/"):
        for method, body in (("GET", None), ("POST", {}), ("PATCH", {}), ("DELETE", None), ("PUT", {})):
            reply = client.send(method, address.removeprefix("api/v1/"), body)
            yield method, reply.status, CHANGING.sub("", reply.body.decode())
    else:
        for method in ("GET", "POST"):
            page = browser.generic(method, f"/{address}", "", content_type="application/x-www-form-urlencoded")
            yield method, page.status_code, CHANGING.sub("", page.content.decode())


def differences(world: World, person: str, client: Contract, kind: str, hidden: str) -> list[str]:
    """The addresses whose answer tells the hidden id from an unknown one."""
    browser, told = signed_in(world.person(person)), []
    pairs = zip(addresses(kind, hidden), addresses(kind, str(UNKNOWN)), strict=True)
    for there, nowhere in pairs:
        for first, second in zip(answers(client, browser, there), answers(client, browser, nowhere), strict=True):
            if first != second:
                told.append(f"{first[0]} {nowhere}: {first[1]} and {second[1]}")
    return told


def test_concealed_id_is_answered_like_a_missing_one(world: World) -> None:
    things = create_private_objects(world)
    assert all(len(addresses(kind, thing)) > 5 for kind, thing in things.items())
    for kind, thing in things.items():
        assert differences(world, "bob", contract(world, "bob"), kind, thing) == []


def test_key_without_reading_tells_no_private_memory(world: World) -> None:
    memory = create_private_objects(world)["memory_id"]
    keys = [key_for(world.bob, scope).text for scope in (Scope.MEMORIES_WRITE, Scope.CHAT, Scope.ADMIN)]
    for key in (*keys, world.ada.key.text):
        client = Contract(key=key)
        for call in ("GET", "DELETE"):
            there, nowhere = (client.send(call, f"memories/{each}/", None) for each in (memory, UNKNOWN))
            assert comparable(there) == comparable(nowhere)


def test_id_in_a_body_is_answered_like_a_missing_one(world: World) -> None:
    hidden, bob = create_private_objects(world)["memory_id"], contract(world, "bob")
    dora = Contract(key=person_add(world.acme, "dora@acme.example", RoleName.EDITOR).key.text)
    own = dora.add("Dora's own.")["id"]
    calls: list[tuple[Contract, Callable[[str], tuple[str, dict[str, Any]]]]] = [
        (
            dora,
            lambda each: ("memories/actions/?dry_run=true", {"action": "tag", "ids": [each], "args": {"tags": ["x"]}}),
        ),
        (dora, lambda each: ("memories/fuse/", {"ids": [own, each]})),
        (bob, lambda each: ("grants/check/", _question(world.bob.member.id, each))),
        (dora, lambda each: ("grants/", {**_question(world.bob.member.id, each), "effect": "allow"})),
    ]
    for client, compose in calls:
        there, nowhere = (client.post(*compose(each)) for each in (hidden, str(UNKNOWN)))
        assert comparable(there) == comparable(nowhere)
    for method, body in (("GET", None), ("PUT", {"text": "x"}), ("DELETE", None)):
        told = [sent(world.bob.key.text, method, f"/v1/memories/{each}/", body) for each in (hidden, UNKNOWN)]
        assert [status for status, _ in told] == [404, 404]
        assert len({CHANGING.sub("", str(answer)) for _, answer in told}) == 1


def comparable(reply: ApiReply) -> tuple[int, str]:
    return reply.status, CHANGING.sub("", reply.body.decode())


def test_both_cost_the_same_and_are_in_the_audit_log(world: World) -> None:
    hidden, bob = create_private_objects(world)["memory_id"], contract(world, "bob")
    for method, body in (("GET", None), ("PATCH", {"title": "x"}), ("DELETE", None)):
        assert cost(bob, hidden, method, body) == cost(bob, str(UNKNOWN), method, body), method
    with acting(world.olivia.actor):
        denied = AuditEntry.objects.filter(outcome=Outcome.DENIED).values_list("object_ids", flat=True)
        assert sorted(str(ids[0]) for ids in denied) == sorted([hidden, str(UNKNOWN)] * 3)


def cost(client: Contract, memory: str, method: str = "GET", body: Any = None) -> int:
    """The number of statements of a call on a memory."""
    return count_queries(lambda: client.send(method, f"memories/{memory}/", body, if_match='"1"'))


def test_what_a_member_sees_but_may_not_change_is_refused_openly(world: World) -> None:
    shared = contract(world, "alice").add("For all.", namespace="/team")["id"]
    reply = contract(world, "bob").patch(f"memories/{shared}/", {"title": "x"}, if_match='"1"')
    assert (reply.status, reply.code) == (403, "forbidden")


def _question(who: UUID, memory: str) -> dict[str, Any]:
    principal = {"kind": "member", "id": str(who)}
    return {"principal": principal, "action": "read", "object": {"type": "memory", "id": memory}}


# Broken on purpose


@pytest.mark.parametrize("broken", ["conceal", "missing"])
def test_an_answer_that_tells_shows(world: World, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    memory, bob = create_private_objects(world)["memory_id"], contract(world, "bob")
    if broken == "conceal":
        monkeypatch.setattr(services, "is_concealed", lambda actor, target, decision: False)
        assert bob.get(f"memories/{memory}/").status != bob.get(f"memories/{UNKNOWN}/").status
    else:
        monkeypatch.setattr(lookup, "refuse_missing", _refuse_at_once)
        assert cost(bob, memory) != cost(bob, str(UNKNOWN))


def _refuse_at_once(*_: object) -> None:
    raise NotFound
