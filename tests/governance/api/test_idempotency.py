"""Idempotency-Key: once means once, for each principal, for a day."""

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connections

from governance.database import acting
from governance.idempotency.services import replies_forget
from governance.models import IdempotencyKey
from governance.vocabulary import Scope
from tests.factories import ApiReply, World, client_for, key_for
from tests.governance.tables import read_all_rows, rows
from vault.models import Cube

Superuser = Callable[[], psycopg.Connection]
BODY = {"content": "The nightingale sings.", "allow_duplicates": True}
AT_ONCE = 5


def _add(world: World, who: str = "alice", body: Any = BODY, key: str = "one") -> ApiReply:
    return world.client(who).post("memories/", body, idempotency_key=key)


def _cubes(world: World) -> int:
    with acting(world.olivia.actor):
        return Cube.objects.count()


def test_the_same_request_has_one_effect_and_the_same_reply(world: World) -> None:
    first, again = _add(world), _add(world)
    assert first.status == again.status == 201
    assert first.json == again.json
    assert _cubes(world) == 1


def test_the_same_body_in_another_order_is_the_same_request(world: World) -> None:
    assert _add(world).json == _add(world, body=dict(reversed(BODY.items()))).json
    assert _cubes(world) == 1


def test_without_a_key_each_request_counts(world: World) -> None:
    for _ in range(2):
        assert world.client("alice").post("memories/", BODY).status == 201
    assert _cubes(world) == 2


def test_a_job_is_promised_once(world: World) -> None:
    replies = [world.client("alice").post("memories/?async=true", BODY, idempotency_key="later") for _ in range(2)]
    assert [reply.status for reply in replies] == [202, 202]
    assert replies[0].json == replies[1].json


def test_another_request_under_the_same_key_is_422_and_changes_nothing(world: World, superuser: Superuser) -> None:
    _add(world)
    before = read_all_rows(superuser())
    for address, body in (
        ("memories/", {**BODY, "content": "Something else."}),
        ("memories/bulk/", {"items": [BODY]}),
        ("memories/?async=true", BODY),
    ):
        reply = world.client("alice").post(address, body, idempotency_key="one")
        assert (reply.status, reply.code) == (422, "idempotency_key_reused"), address
        assert read_all_rows(superuser()) == before


def test_a_request_that_was_refused_leaves_the_key_free(world: World) -> None:
    assert _add(world, body={"content": ""}).status == 400
    assert _add(world).status == 201


def test_a_bad_key_is_400(world: World) -> None:
    for key in ("", "x" * 256, "tab\there"):
        reply = _add(world, key=key)
        assert (reply.status, reply.json["errors"][0]["field"]) == (400, "Idempotency-Key"), key
    assert _cubes(world) == 0


def test_the_longest_key_is_good(world: World) -> None:
    assert _add(world, key="x" * 255).status == _add(world, key="x" * 255).status == 201
    assert _cubes(world) == 1


def test_while_one_is_being_answered_the_other_is_in_flight(world: World, superuser: Superuser) -> None:
    """The lock that the first one would hold is held here."""
    name = f"{world.acme.id}/{world.alice.key.id}/one"
    holder = superuser()
    holder.execute("SELECT pg_advisory_lock(hashtextextended(%s, 1))", [name])
    reply = _add(world)
    assert (reply.status, reply.code) == (409, "in_flight")
    assert _cubes(world) == 0
    assert _add(world, "olivia").status == 201
    holder.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 1))", [name])
    assert _add(world).status == 201


def test_many_at_once_have_one_effect(world: World) -> None:
    barrier, replies = threading.Barrier(AT_ONCE), []

    def send() -> None:
        barrier.wait(timeout=10)
        replies.append(_add(world))
        connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(replies) == AT_ONCE
    answered = [reply for reply in replies if reply.status == 201]
    assert {reply.code for reply in replies if reply.status != 201} <= {"in_flight"}
    assert answered
    assert all(reply.json == answered[0].json for reply in answered)
    assert _add(world).json == answered[0].json
    assert _cubes(world) == 1


def test_the_stored_reply_is_sealed(world: World, superuser: Superuser) -> None:
    _add(world)
    stored = str(rows(superuser(), "governance_idempotencykey"))
    assert "one" in stored
    assert "nightingale" not in stored
    assert b"nightingale".hex() not in stored


@pytest.mark.parametrize("who", ["olivia", "charlie"])
def test_the_key_of_one_principal_is_nothing_to_another(world: World, who: str) -> None:
    first, other = _add(world), _add(world, who)
    assert first.status == other.status == 201
    assert first.json["results"][0]["id"] != other.json["results"][0]["id"]


def test_another_key_of_the_same_member_is_another_principal(world: World) -> None:
    second = client_for(key_for(world.alice, *Scope).text)
    assert second.post("memories/", BODY, idempotency_key="one").json != _add(world).json
    assert _cubes(world) == 2


def test_stored_reply_is_withheld_from_a_caller_without_the_permission(world: World) -> None:
    _add(world)
    with acting(world.olivia.actor):
        world.alice.member.role_id = world.bob.member.role_id
        world.alice.member.save(update_fields=["role_id"])
    reply = _add(world)
    assert (reply.status, reply.code) == (403, "forbidden")


@pytest.mark.parametrize(("age", "cubes"), [("23 hours 59 minutes", 1), ("24 hours 1 second", 2)])
def test_idempotency_record_is_stored_for_a_day(world: World, superuser: Superuser, age: str, cubes: int) -> None:
    _add(world)
    superuser().execute("UPDATE governance_idempotencykey SET created_at = now() - %s::interval", [age])
    assert _add(world).status == 201
    assert _cubes(world) == cubes
    with acting(world.olivia.actor):
        assert IdempotencyKey.objects.count() == 1


def test_a_reply_that_could_not_be_stored_undoes_its_effect(world: World, superuser: Superuser) -> None:
    superuser().execute("REVOKE INSERT ON governance_idempotencykey FROM memos_app")
    assert _add(world).status == 500
    assert _cubes(world) == 0


def test_a_reply_names_what_it_shows_and_goes_with_it(world: World) -> None:
    client = world.client("alice")
    memory = _add(world).json["results"][0]["id"]
    kept = client.post("memories/bulk/", {"items": [{"content": "Kept."}]}, idempotency_key="bulk")
    talk = client.post("conversations/", {"title": "Talk"}, idempotency_key="talk").json["id"]
    turn = client.post(f"conversations/{talk}/turns/", {"content": "Who sings?"}, idempotency_key="turn").json
    client.post(f"memories/{memory}/restore/", idempotency_key="restore")
    with acting(world.olivia.actor):
        shows = dict(IdempotencyKey.objects.values_list("key", "object_ids"))
    assert shows["one"] == shows["restore"] == [UUID(memory)]
    assert shows["bulk"] == [UUID(kept.json["results"][0]["memory"]["id"])]
    assert shows["talk"] == [UUID(talk)]
    assert {UUID(citation["memory_id"]) for citation in turn["citations"]} < set(shows["turn"])
    assert len(shows["turn"]) == 3 + len(turn["citations"])  # the conversation, question and answer
    assert replies_forget(actor=world.charlie.actor, object_ids=[UUID(memory)]) == 0
    assert replies_forget(actor=world.alice.actor, object_ids=[UUID(memory)]) >= 2
    with acting(world.olivia.actor):
        left = set(IdempotencyKey.objects.values_list("key", flat=True))
    assert left >= {"bulk", "talk"}
    assert not left & {"one", "restore"}


def test_a_repeated_restore_asks_again(world: World) -> None:
    memory = _add(world).json["results"][0]["id"]
    client = world.client("alice")
    client.delete(f"memories/{memory}/")
    address = f"memories/{memory}/restore/"
    first = client.post(address, idempotency_key="restore")
    again = client.post(address, idempotency_key="restore")
    assert (first.status, first.json) == (again.status, again.json)
    with acting(world.olivia.actor):
        world.alice.member.role_id = world.bob.member.role_id
        world.alice.member.save(update_fields=["role_id"])
    assert client.post(address, idempotency_key="restore").status == 403
    assert client.delete(f"memories/{memory}/").status == 403


def test_a_repeated_restore_does_not_show_what_was_erased_since(world: World) -> None:
    memory = _add(world).json["results"][0]["id"]
    client = world.client("alice")
    address = f"memories/{memory}/restore/"
    assert client.post(address, idempotency_key="restore").status == 200
    assert client.delete(f"memories/{memory}/?purge=true").status == 204
    assert client.post(address, idempotency_key="restore").status == 404
