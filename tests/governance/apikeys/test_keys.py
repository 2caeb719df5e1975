"""API keys, managed: listed, renamed, rotated, revoked; by service, by the API and on their page."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import redis
from django.test import override_settings

from governance.actor import Actor
from governance.apikeys.selectors import apikey_get, apikeys_list
from governance.apikeys.services import KeyChanges, apikey_revoke, apikey_rotate, apikey_update
from governance.errors import Conflict, Forbidden, NotFound
from governance.pages import First
from governance.tenants import last_use
from governance.tenants.last_use import last_uses_write
from governance.tenants.services import apikey_create
from governance.vocabulary import RoleName, Scope
from tests.factories import World, actor_of, client_for, key_for, person_add
from tests.governance.accounts.people import find_entries
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, without_id

Superuser = Callable[[], psycopg.Connection]
Call = Callable[[World, Actor], object]
DAY = timedelta(days=1)
RENAMED = KeyChanges(given=frozenset({"name"}), name="mine")
ON_BOBS: dict[str, Call] = {
    "apikey_get": lambda world, actor: apikey_get(actor=actor, key_id=world.bob.key.id),
    "apikey_update": lambda world, actor: apikey_update(actor=actor, key_id=world.bob.key.id, changes=RENAMED),
    "apikey_rotate": lambda world, actor: apikey_rotate(actor=actor, key_id=world.bob.key.id, overlap=DAY),
    "apikey_revoke": lambda world, actor: apikey_revoke(actor=actor, key_id=world.bob.key.id),
}


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_it_refuses_those_who_do_not_govern_and_leaves_no_row(world: World, superuser: Superuser, who: str) -> None:
    before = read_all_rows(superuser())
    calls: dict[str, Call] = {
        **ON_BOBS,
        "apikeys_list": lambda world, actor: apikeys_list(actor=actor, pages=First(1000)),
    }
    for name, call in calls.items():
        with pytest.raises(Forbidden):
            call(world, world.person(who).actor)
        assert read_all_rows(superuser()) == before, name


def test_another_tenants_key_is_not_found(world: World, superuser: Superuser) -> None:
    before = read_all_rows(superuser())
    for call in ON_BOBS.values():
        with pytest.raises(NotFound):
            call(world, world.charlie.actor)
    assert read_all_rows(superuser()) == before


def test_an_owner_may_and_each_change_is_in_the_audit_log(world: World, superuser: Superuser) -> None:
    for call in ON_BOBS.values():
        call(world, world.olivia.actor)
    prefix = world.bob.key.prefix
    assert find_entries(superuser, "apikey.updated") == [{"prefix": prefix, "changed": "name"}]
    assert find_entries(superuser, "apikey.rotated") == [{"prefix": prefix, "overlap_seconds": 86400}]
    assert find_entries(superuser, "apikey.revoked") == [{"prefix": prefix}]


def test_a_key_gives_no_more_than_it_has_and_an_admin_no_owners_key(world: World, superuser: Superuser) -> None:
    admin = person_add(world.acme, "adam@acme.example", RoleName.ADMIN)
    limited = actor_of(world.olivia.member, frozenset({Scope.ADMIN}), role=RoleName.OWNER)
    calls: list[Callable[[], object]] = [
        lambda: apikey_create(actor=admin.actor, member=world.olivia.member, scopes=[Scope.CHAT]),
        lambda: apikey_rotate(actor=admin.actor, key_id=world.olivia.key.id, overlap=DAY),
        lambda: apikey_rotate(actor=limited, key_id=world.bob.key.id, overlap=DAY),
        lambda: apikey_create(actor=limited, member=world.bob.member, scopes=[Scope.CHAT]),
    ]
    before = read_all_rows(superuser())
    for call in calls:
        with pytest.raises(Forbidden):
            call()
    assert read_all_rows(superuser()) == before


def test_a_key_does_no_more_than_its_member_may(world: World) -> None:
    assert client_for(world.bob.key.text).post("memories/", {"content": "x"}).status == 403
    assert client_for(world.alice.key.text).get("members/").status == 403


def test_both_secrets_work_during_the_overlap_and_only_the_new_one_after(world: World, superuser: Superuser) -> None:
    old = world.alice.key.text
    new = apikey_rotate(actor=world.olivia.actor, key_id=world.alice.key.id, overlap=DAY).text
    assert new != old
    assert new.split("_")[1] == old.split("_")[1]
    assert [client_for(text).get("me/").status for text in (old, new)] == [200, 200]
    superuser().execute("UPDATE governance_apikey SET previous_until = now() WHERE prefix = %s", [new.split("_")[1]])
    assert [client_for(text).get("me/").status for text in (old, new)] == [401, 200]


def test_a_rotation_without_overlap_stops_the_old_one_at_once(world: World) -> None:
    made = apikey_rotate(actor=world.olivia.actor, key_id=world.alice.key.id, overlap=timedelta(0))
    assert client_for(world.alice.key.text).get("me/").status == 401
    assert client_for(made.text).get("me/").status == 200


def test_a_second_rotation_ends_the_oldest(world: World) -> None:
    first = apikey_rotate(actor=world.olivia.actor, key_id=world.alice.key.id, overlap=DAY).text
    second = apikey_rotate(actor=world.olivia.actor, key_id=world.alice.key.id, overlap=DAY).text
    texts = (world.alice.key.text, first, second)
    assert [client_for(text).get("me/").status for text in texts] == [401, 200, 200]


def test_a_revoked_key_stops_with_all_its_secrets_and_stays_revoked(world: World) -> None:
    new = apikey_rotate(actor=world.olivia.actor, key_id=world.alice.key.id, overlap=DAY).text
    apikey_revoke(actor=world.olivia.actor, key_id=world.alice.key.id)
    assert [client_for(text).get("me/").status for text in (world.alice.key.text, new)] == [401, 401]
    with pytest.raises(Conflict):
        apikey_rotate(actor=world.olivia.actor, key_id=world.alice.key.id, overlap=DAY)
    with pytest.raises(Conflict):
        apikey_update(actor=world.olivia.actor, key_id=world.alice.key.id, changes=RENAMED)


def test_the_last_use_is_noted_in_redis_and_written_by_the_clock(
    world: World, superuser: Superuser, redis_address: str
) -> None:
    key = key_for(world.alice, Scope.MEMORIES_READ)
    for _ in range(3):
        assert client_for(key.text).get("me/").status == 200
    read = "SELECT last_used_at FROM governance_apikey WHERE id = %s"
    assert superuser().execute(read, [key.id]).fetchone() == (None,)  # no request writes it
    client = redis.Redis.from_url(redis_address, decode_responses=True)
    assert client.smembers(last_use.NOTES) == {f"{world.acme.id}/{key.id}"}
    client.close()
    assert last_uses_write() == 1
    found = superuser().execute(read, [key.id]).fetchone()
    assert found is not None
    assert found[0] is not None
    assert last_uses_write() == 0


def test_a_refused_key_leaves_no_note(world: World, redis_address: str) -> None:
    key = key_for(world.alice, Scope.MEMORIES_READ)
    assert client_for(key.text + "x").get("me/").status == 401
    assert last_uses_write() == 0


@override_settings(REDIS_ADDRESS="unix:///nonexistent/redis.sock?db=0")
def test_without_redis_nothing_is_noted_and_nothing_waits(world: World) -> None:
    key = key_for(world.alice, Scope.MEMORIES_READ)
    assert client_for(key.text).get("me/").status == 200
    assert last_uses_write() == 0


def test_the_api_makes_lists_changes_rotates_and_revokes(world: World) -> None:
    client = Contract(key=world.olivia.key.text)
    body = {"member": str(world.alice.member.id), "name": "CI", "scopes": ["memories:read"]}
    made = client.post("api-keys/", body, idempotency_key="once")
    assert made.status == 201
    assert client.post("api-keys/", body, idempotency_key="once").json == made.json
    assert client_for(made.json["api_key"]).get("memories/").status == 200
    address = f"api-keys/{made.json['id']}/"
    shown = client.get(address).json
    assert shown["member"] == {"id": str(world.alice.member.id), "email": "alice@acme.example"}
    assert "api_key" not in shown
    ends = (datetime.now(tz=UTC) + DAY).isoformat()
    changed = client.patch(address, {"name": "build", "expires_at": ends}).json
    assert (changed["name"], changed["expires_at"] is None) == ("build", False)
    assert client.patch(address, {"expires_at": None}).json["expires_at"] is None
    rotated = client.post(address + "rotate/", {"overlap_seconds": 60})
    assert rotated.status == 200
    assert client_for(rotated.json["api_key"]).get("memories/").status == 200
    assert client.get("api-keys/").json["results"][0]["id"] == made.json["id"]
    assert client.delete(address).status == 204
    assert client.get(address).json["revoked_at"] is not None
    assert client.post(address + "rotate/", {}).status == 409
    assert client_for(rotated.json["api_key"]).get("memories/").status == 401


def test_a_key_made_without_a_member_is_the_callers_own(world: World) -> None:
    made = Contract(key=world.olivia.key.text).post("api-keys/", {"scopes": ["chat"]})
    assert made.json["member"]["email"] == "olivia@acme.example"


@each_case(
    "body",
    [
        {},
        {"scopes": []},
        {"scopes": ["all"]},
        {"scopes": ["chat"], "expires_at": "2020-01-01T00:00:00Z"},
        {"scopes": ["chat"], "expires_at": "soon"},
        {"scopes": ["chat"], "name": "x" * 101},
        {"scopes": ["chat"], "member": str(MISSING)},
        {"scopes": ["chat"], "secret": "mine"},
    ],
)
def test_the_api_answers_bad_input_by_name(world: World, body: dict[str, object]) -> None:
    assert Contract(key=world.olivia.key.text).post("api-keys/", body).status == 400


def test_a_foreign_member_is_answered_like_a_missing_one(world: World) -> None:
    client = Contract(key=world.olivia.key.text)
    replies = [
        client.post("api-keys/", {"scopes": ["chat"], "member": str(member)})
        for member in (world.charlie.member.id, MISSING)
    ]
    assert without_id(replies[0]) == without_id(replies[1])


def test_a_foreign_key_is_like_one_that_never_was(world: World) -> None:
    charlie = Contract(key=world.charlie.key.text)
    for method, tail, body in (
        ("GET", "", None),
        ("PATCH", "", {"name": "x"}),
        ("DELETE", "", None),
        ("POST", "rotate/", {}),
    ):
        reply, missing = (charlie.send(method, f"api-keys/{key}/{tail}", body) for key in (world.bob.key.id, MISSING))
        assert reply.status == 404
        assert without_id(reply) == without_id(missing)


def test_at_home_it_is_403_and_the_denial_is_recorded(world: World, superuser: Superuser) -> None:
    alice = Contract(key=world.alice.key.text)
    assert alice.get("api-keys/").status == 403
    assert alice.post("api-keys/", {"scopes": ["chat"]}).status == 403
    assert alice.post(f"api-keys/{world.bob.key.id}/rotate/", {}).status == 403
    assert len(find_entries(superuser, "access.denied", world.alice.member.id)) == 3


def test_the_page_shows_a_key_once_and_works_in_parts(world: World) -> None:
    client = signed_in(world.olivia)
    body = {"member": world.alice.member.id, "scopes": ["chat"], "name": "CI", "expires": "2099-01-31"}
    made = client.post("/settings/keys/", body).content.decode()
    assert "mos_" in made
    text = made.split('<code id="made-key">')[1].split("<")[0]
    assert client_for(text).get("me/").status == 200
    assert text not in client.get("/settings/keys/").content.decode()
    wrongs: list[dict[str, object]] = [{"scopes": []}, {"member": "x"}, {"expires": "soon"}, {"expires": "2020-01-01"}]
    for wrong in wrongs:
        assert client.post("/settings/keys/", {**body, **wrong}).status_code == 422
    address = f"/settings/keys/{world.alice.key.id}/"
    assert client.get(address).status_code == 200
    assert client.post(address, {"name": "new name", "expires": ""}).status_code == 303
    rotated = client.post(address + "rotate/", {"hours": "1"}).content.decode()
    assert "The former secret works until" in rotated
    assert client.post(address + "rotate/", {"hours": "9999"}).status_code == 422
    part = client.post(address + "revoke/", headers={"HX-Request": "true"}).content.decode()
    assert re.match(r'\s*<section [^>]*id="keys"', part)
    assert client_for(world.alice.key.text).get("me/").status == 401
    assert signed_in(world.bob).get("/settings/keys/").status_code == 403
