"""API keys: shown once, stored as a hash, refused in the same words whatever is wrong with them."""

import logging
from collections.abc import Callable

import psycopg
import pytest

from governance.database import acting
from governance.models import ApiKey, Member, Tenant
from governance.tenants.selectors import actor_by_key
from governance.vocabulary import Scope
from tests.factories import Person, World, client_for, key_for
from tests.governance.tables import read_all_rows
from tests.harness.cases import each_case

Superuser = Callable[[], psycopg.Connection]
MOMENT_PAST = "2020-01-01T00:00:00Z"


def test_a_key_acts_for_its_member(world: World) -> None:
    me = world.client("alice").get("me/").json
    assert me["tenant"]["slug"] == "acme"
    assert me["roles"] == ["editor"]
    assert me["principal"]["email"] == "alice@acme.example"
    assert me["principal"]["key_prefix"] == world.alice.key.prefix


def _expire_key(world: World, person: Person) -> str:
    with acting(world.olivia.actor):
        ApiKey.objects.filter(id=person.key.id).update(expires_at=MOMENT_PAST)
    return person.key.text


def _revoke_key(world: World, person: Person) -> str:
    with acting(world.olivia.actor):
        ApiKey.objects.filter(id=person.key.id).update(revoked_at=MOMENT_PAST)
    return person.key.text


def _remove_member(world: World, person: Person) -> str:
    with acting(world.olivia.actor):
        Member.objects.filter(id=person.member.id).update(removed_at=MOMENT_PAST)
    return person.key.text


ENDED = {"expired": _expire_key, "revoked": _revoke_key, "removed member": _remove_member}
WRONG: dict[str, Callable[[World, Person], str]] = {
    "wrong secret": lambda world, person: person.key.text[:-1] + ("a" if person.key.text[-1] != "a" else "b"),
    "no secret": lambda world, person: f"mos_{person.key.prefix}_",
    "unknown prefix": lambda world, person: person.key.text.replace(person.key.prefix, "0123456789ab"),
    "prefix of another tenant": lambda world, person: person.key.text.replace(
        person.key.prefix, world.charlie.key.prefix
    ),
    "no key": lambda world, person: "nonsense",
    "empty": lambda world, person: "",
    "too long": lambda world, person: person.key.text + "x" * 10_000,
    "not ASCII": lambda world, person: "mos_0123456789ab_caf\u00e9",
    "SQL": lambda world, person: "mos_' OR 1=1 --_x",
}


@pytest.mark.parametrize("fault", ENDED)
def test_a_key_that_has_ended_is_answered_like_one_that_never_was(
    world: World, superuser: Superuser, fault: str
) -> None:
    _assert_unknown(superuser(), ENDED[fault](world, world.alice))


def test_whatever_is_wrong_with_a_key_the_answer_is_the_same(world: World, superuser: Superuser) -> None:
    for wrong in WRONG.values():
        _assert_unknown(superuser(), wrong(world, world.alice))


def _assert_unknown(superuser: psycopg.Connection, text: str) -> None:
    """The 401 of a key that never was, to the byte; and no row is written."""
    before = read_all_rows(superuser)
    reply = client_for(text).get("me/", x_request_id="the-same-id")
    unknown = client_for("mos_000000000000_nothing").get("me/", x_request_id="the-same-id")
    assert (reply.status, reply.code) == (401, "unauthenticated"), text
    assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert reply.body == unknown.body
    assert read_all_rows(superuser) == before


def test_another_scheme_is_the_same_401(world: World) -> None:
    for header in ("Basic YWxpY2U6eA==", "Bearer", "mos_a_b", "bearer  "):
        reply = client_for(None).get("me/", authorization=header)
        assert (reply.status, reply.code) == (401, "unauthenticated"), header


def test_nobody_is_401_on_every_address(world: World) -> None:
    for address in ("me/", "memories/", "conversations/", "jobs/"):
        assert client_for(None).get(address).status == 401


def test_the_scheme_is_read_without_regard_to_case(world: World) -> None:
    assert client_for(None).get("me/", authorization=f"bearer {world.alice.key.text}").status == 200


def test_a_key_is_in_no_table_and_no_log(world: World, superuser: Superuser, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    text = world.alice.key.text
    secret = text.rsplit("_", 1)[1]
    world.client("alice").post("memories/", {"content": "a word"})
    client_for(text + "x").get("me/")
    world.client("alice").get("no/such/address/")
    found = str(read_all_rows(superuser()))
    assert text not in found
    assert secret not in found
    assert secret.encode().hex() not in found
    assert secret not in caplog.text
    assert secret not in repr(world.alice.key_actor())


@each_case(
    ("scope", "allowed"),
    [
        (Scope.MEMORIES_READ, {"list", "search"}),
        (Scope.MEMORIES_WRITE, {"add"}),
        (Scope.CHAT, {"talk"}),
        (Scope.ADMIN, set()),
    ],
)
def test_a_key_does_what_its_scopes_allow(world: World, scope: Scope, allowed: set[str]) -> None:
    client = client_for(key_for(world.alice, scope).text)
    replies = {
        "list": client.get("memories/"),
        "search": client.post("memories/search/", {"query": "a word"}),
        "add": client.post("memories/", {"content": "a word"}),
        "talk": client.post("conversations/", {}),
    }
    assert {name for name, reply in replies.items() if reply.status < 300} == allowed
    assert {reply.code for name, reply in replies.items() if name not in allowed} == {"forbidden"}
    assert client.get("me/").json["scopes"] == [scope]


def test_a_key_that_was_revoked_stops_at_the_next_request(world: World) -> None:
    client = world.client("alice")
    assert client.get("me/").status == 200
    _revoke_key(world, world.alice)
    assert client.get("me/").status == 401


def test_no_key_turns_a_transaction_to_its_own_tenant(world: World) -> None:
    with acting(world.alice.actor):
        with pytest.raises(RuntimeError, match="cannot turn"):
            actor_by_key(presented=world.charlie.key.text, request_id="r", context=world.charlie.actor.context)
        assert set(Tenant.objects.values_list("id", flat=True)) == {world.acme.id}
