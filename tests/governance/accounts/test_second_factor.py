"""Tests of the second factor: required of everybody who has one, and of all members if their organisation says so."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from allauth.mfa.models import Authenticator
from django.core.management import call_command
from django.db import connections

from governance.accounts.attempts import attempts_forget
from governance.accounts.factors import PLACE, second_factor_pass
from governance.accounts.identities import second_factor_require
from governance.accounts.rules import FirstFactor, Way
from governance.database import as_person, no_tenant
from governance.errors import Forbidden, Invalid, TooManyAttempts
from governance.keys.rules import SealBroken
from tests.factories import REQUEST_ID, World, person_add
from tests.governance.accounts.people import (
    ADDRESS,
    PASSWORD,
    browser,
    code_of,
    find_entries,
    give_password,
    is_in,
    set_up_factor,
    sign_in,
)
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import link_for, signed_in

Superuser = Callable[[], psycopg.Connection]


def test_second_factor_is_required_after_a_password(world: World, superuser: Superuser) -> None:
    give_password(world.alice)
    secret, _ = set_up_factor(sign_in(world.alice.email))
    client = sign_in(world.alice.email)
    assert not is_in(client)
    assert client.post("/sign-in/~/code/", {"code": "000000"}).status_code == 422
    assert not is_in(client)
    assert client.post("/sign-in/~/code/", {"code": code_of(secret)})["Location"] == "/overview/"
    assert is_in(client)
    assert find_entries(superuser, "member.signed_in", world.alice.member.id)[-1]["second_factor"] is True
    assert len(find_entries(superuser, "sign_in.failed", world.alice.member.id)) == 1


def test_second_factor_is_required_after_a_link(world: World) -> None:
    secret, _ = set_up_factor(signed_in(world.alice))
    client = browser()
    assert client.post(link_for(world.alice))["Location"] == "/sign-in/~/code/"
    assert not is_in(client)
    client.post("/sign-in/~/code/", {"code": code_of(secret)})
    assert is_in(client)


def test_second_step_without_the_first_is_refused(world: World) -> None:
    set_up_factor(signed_in(world.alice))
    for address in ("/sign-in/~/code/", "/sign-in/~/organisation/"):
        assert browser().post(address, {"code": "1", "organisation": world.alice.member.id})["Location"] == "/sign-in/"
    client = browser()
    client.post(link_for(world.alice))
    assert client.post("/sign-in/~/organisation/", {"organisation": world.alice.member.id})["Location"] == "/sign-in/"
    assert not is_in(client)


def test_a_code_works_once(world: World) -> None:
    give_password(world.alice)
    secret, _ = set_up_factor(sign_in(world.alice.email))
    code = code_of(secret)
    first, second = sign_in(world.alice.email), sign_in(world.alice.email)
    assert first.post("/sign-in/~/code/", {"code": code}).status_code == 303
    assert second.post("/sign-in/~/code/", {"code": code}).status_code == 422


def test_a_recovery_code_lets_in_once_and_is_in_the_audit_log(world: World, superuser: Superuser) -> None:
    give_password(world.alice)
    _, codes = set_up_factor(sign_in(world.alice.email))
    assert sign_in(world.alice.email).post("/sign-in/~/code/", {"code": codes[3]}).status_code == 303
    assert sign_in(world.alice.email).post("/sign-in/~/code/", {"code": codes[3]}).status_code == 422
    assert len(find_entries(superuser, "recovery_code.used", world.alice.member.id)) == 1


def test_codes_are_not_guessed_not_even_from_many_addresses(world: World, superuser: Superuser) -> None:
    set_up_factor(signed_in(world.alice))
    first = FirstFactor(user_id=world.alice.member.user_id, bound_to=None, way=Way.PASSWORD)
    for n in range(5):
        with pytest.raises(Invalid):
            second_factor_pass(first=first, code="000000", request_id=REQUEST_ID, address=f"192.0.2.{n}")
    with pytest.raises(TooManyAttempts):
        second_factor_pass(first=first, code="000000", request_id=REQUEST_ID, address="192.0.2.99")
    assert len(find_entries(superuser, "sign_in.locked", world.alice.member.id)) == 1


def test_locked_person_is_refused_with_every_code_and_in_every_new_sign_in(world: World) -> None:
    give_password(world.alice)
    secret, codes = set_up_factor(sign_in(world.alice.email))
    client = sign_in(world.alice.email)
    for _ in range(5):
        assert client.post("/sign-in/~/code/", {"code": "000000"}).status_code == 422
    again, by_link = sign_in(world.alice.email), browser()
    by_link.post(link_for(world.alice))
    for guesser in (client, again, by_link):
        for code in (code_of(secret), codes[0]):
            locked = guesser.post("/sign-in/~/code/", {"code": code})
            assert locked.status_code == 429
            assert int(locked["Retry-After"]) > 0
        assert not is_in(guesser)
    attempts_forget(PLACE, str(world.alice.member.user_id))  # the wait is over
    assert again.post("/sign-in/~/code/", {"code": codes[0]}).status_code == 303, "a refused code was not spent"


def test_right_code_resets_the_count_of_attempts_and_a_first_factor_does_not(world: World) -> None:
    give_password(world.alice)
    secret, _ = set_up_factor(sign_in(world.alice.email))
    for _ in range(4):
        assert sign_in(world.alice.email).post("/sign-in/~/code/", {"code": "000000"}).status_code == 422
    assert sign_in(world.alice.email).post("/sign-in/~/code/", {"code": code_of(secret)}).status_code == 303
    client = sign_in(world.alice.email)
    tried = [client.post("/sign-in/~/code/", {"code": "000000"}).status_code for _ in range(6)]
    assert tried == [422] * 5 + [429]


def test_used_code_and_earlier_codes_are_refused_everywhere(world: World) -> None:
    give_password(world.alice)
    secret, _ = set_up_factor(sign_in(world.alice.email))
    client, code = sign_in(world.alice.email), code_of(secret)
    assert client.post("/sign-in/~/code/", {"code": code}).status_code == 303
    for address in ("/account/second-factor/remove/", "/account/second-factor/codes/"):
        for spent in (code, code_of(secret, steps=-1)):
            assert client.post(address, {"code": spent}).status_code == 422
    assert sign_in(world.alice.email).post("/sign-in/~/code/", {"code": code_of(secret, steps=-1)}).status_code == 422


@pytest.mark.parametrize("kind", ["totp", "recovery"])
def test_concurrent_uses_of_one_code_succeed_once(world: World, kind: str) -> None:
    secret, codes = set_up_factor(signed_in(world.alice))
    code = code_of(secret) if kind == "totp" else codes[0]
    first = FirstFactor(user_id=world.alice.member.user_id, bound_to=None, way=Way.PASSWORD)

    def passes(number: int) -> bool:
        try:
            second_factor_pass(first=first, code=code, request_id=REQUEST_ID, address=f"192.0.2.{number}")
        except Invalid:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(passes, range(4))) == 1


def test_new_recovery_codes_end_the_old_ones(world: World) -> None:
    client = signed_in(world.alice)
    _, codes = set_up_factor(client)
    assert client.post("/account/second-factor/codes/", {"code": "1"}).status_code == 422
    renewed = client.post("/account/second-factor/codes/", {"code": codes[0]})
    assert renewed.status_code == 200
    assert codes[1] not in renewed.content.decode()
    again = browser()
    again.post(link_for(world.alice))
    assert again.post("/sign-in/~/code/", {"code": codes[1]}).status_code == 422


def test_removal_needs_a_valid_code(world: World, superuser: Superuser) -> None:
    client = signed_in(world.alice)
    secret, _ = set_up_factor(client)
    assert client.post("/account/second-factor/remove/", {"code": "1"}).status_code == 422
    assert client.post("/account/second-factor/remove/", {"code": code_of(secret)}).status_code == 303
    again = browser()
    again.post(link_for(world.alice))
    assert is_in(again)
    assert len(find_entries(superuser, "second_factor.removed", world.alice.member.id)) == 1


def test_sessions_without_a_second_factor_end_when_one_is_set_up(world: World) -> None:
    give_password(world.alice)
    here, there = sign_in(world.alice.email), sign_in(world.alice.email)
    set_up_factor(here)
    assert is_in(here)
    assert not is_in(there)


def test_stored_secrets_are_sealed_and_bound_to_their_person(world: World, superuser: Superuser) -> None:
    secret, codes = set_up_factor(signed_in(world.alice))
    stored = str(superuser().execute("SELECT t::text FROM mfa_authenticator AS t").fetchall())
    for plain in (secret, *codes):
        assert plain not in stored
    superuser().execute("UPDATE mfa_authenticator SET user_id = %s", [world.bob.member.user_id])
    first = FirstFactor(user_id=world.bob.member.user_id, bound_to=None, way=Way.PASSWORD)
    with pytest.raises(SealBroken):
        second_factor_pass(first=first, code=code_of(secret), request_id=REQUEST_ID, address=ADDRESS)


def test_rows_of_a_person_are_visible_as_that_person_only(world: World, app_connection: psycopg.Connection) -> None:
    give_password(world.alice)
    set_up_factor(sign_in(world.alice.email))
    for table in ("mfa_authenticator", "governance_browsersession", "governance_passwordreset"):
        count = f"SELECT count(*) FROM {table}".encode()
        for user in ("", str(world.bob.member.user_id)):
            with app_connection.transaction():
                app_connection.execute("SELECT set_config('app.tenant', %s, true)", [str(world.acme.id)])
                app_connection.execute("SELECT set_config('app.user', %s, true)", [user])
                assert app_connection.execute(count).fetchone() == (0,), table
    with no_tenant(), as_person(world.alice.member.user_id):
        assert Authenticator.objects.count() == 2
    with no_tenant():
        assert Authenticator.objects.count() == 0


def test_required_second_factor_stops_members_without_one(world: World) -> None:
    owner, alice = signed_in(world.olivia), signed_in(world.alice)
    assert owner.post("/settings/sign-in/second-factor/", {"required": "yes"}).status_code == 303
    for client in (owner, alice):
        assert client.get("/chat/")["Location"] == "/account/second-factor/"
        assert client.get("/settings/keys/")["Location"] == "/account/second-factor/"
        refused = client.get("/api/v1/me/")
        assert (refused.status_code, refused.json()["code"]) == (403, "second_factor_required")
    secret, _ = set_up_factor(alice)
    assert is_in(alice)
    assert alice.post("/account/second-factor/remove/", {"code": code_of(secret)}).status_code == 403
    assert world.client("bob").get("me/").status == 200  # API keys need no second factor


def test_session_with_a_second_factor_goes_on_when_it_becomes_required(world: World) -> None:
    client = signed_in(world.alice)
    secret, _ = set_up_factor(client)
    late = browser()
    late.post(link_for(world.alice))
    late.post("/sign-in/~/code/", {"code": code_of(secret)})
    second_factor_require(actor=world.olivia.actor, required=True)
    assert is_in(late)


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_member_who_does_not_manage_members_cannot_require_it(world: World, superuser: Superuser, who: str) -> None:
    before = read_all_rows(superuser())
    with pytest.raises(Forbidden):
        second_factor_require(actor=world.person(who).actor, required=True)
    assert read_all_rows(superuser()) == before


def test_another_organisations_link_cannot_lock_a_person_out(world: World) -> None:
    joined = person_add(world.other, world.alice.email, world.alice.role)
    client = browser()
    client.post(link_for(joined, by=world.charlie.actor))
    assert is_in(client)
    assert client.get("/account/second-factor/").status_code == 403
    assert client.post("/account/second-factor/", {"code": "123456"}).status_code == 403
    give_password(world.alice)
    assert not is_in(sign_in(world.alice.email, "wrong"))
    assert sign_in(world.alice.email, PASSWORD).get("/sign-in/~/organisation/").status_code == 200


def test_operator_removes_a_lost_second_factor(world: World, superuser: Superuser) -> None:
    set_up_factor(signed_in(world.alice))
    call_command("second_factor_remove", "--email", world.alice.email, "--json")
    client = browser()
    client.post(link_for(world.alice))
    assert is_in(client)
    assert find_entries(superuser, "second_factor.removed", world.alice.member.id) == [{"by": "operator"}]
