"""Passwords: they let the right one in, tell the others nothing, and are not guessed."""

import re
from collections.abc import Callable
from hashlib import sha256

import psycopg
import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core import mail
from django.test import override_settings

from tests.factories import World, person_add
from tests.governance.accounts.people import (
    PASSWORD,
    browser,
    find_entries,
    find_mailed_link,
    give_password,
    is_in,
    sign_in,
)
from tests.governance.filled_tenants import drain
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case

Superuser = Callable[[], psycopg.Connection]
WITHOUT_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="[^"]+"|<code>[0-9a-f-]{36}</code>')


class CountingHasher(MD5PasswordHasher):
    """Counts how often a password is hashed."""

    algorithm = "counting"
    hashed = 0

    def encode(self, password: str, salt: str) -> str:
        CountingHasher.hashed += 1
        return super().encode(password, salt)


def test_the_right_password_lets_in_and_is_in_the_audit_log(world: World, superuser: Superuser) -> None:
    give_password(world.alice)
    client = sign_in("ALICE@acme.example")
    assert is_in(client)
    rows = find_entries(superuser, "member.signed_in", world.alice.member.id)
    assert [(row["way"], row["second_factor"]) for row in rows] == [("password", False)]


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD + " ", PASSWORD.upper()])
def test_a_wrong_one_does_not_and_is_in_the_audit_log(world: World, superuser: Superuser, password: str) -> None:
    give_password(world.alice)
    assert not is_in(sign_in(world.alice.email, password))
    assert len(find_entries(superuser, "sign_in.failed", world.alice.member.id)) == 1
    assert find_entries(superuser, "member.signed_in", world.alice.member.id) == []


def test_who_has_no_password_is_not_let_in_by_an_empty_one(world: World) -> None:
    for password in ("", "!", "None"):
        assert not is_in(sign_in(world.alice.email, password))


def test_unknown_wrong_and_missing_are_answered_alike_after_the_same_hashing(world: World) -> None:
    with override_settings(PASSWORD_HASHERS=[f"{__name__}.CountingHasher"]):
        give_password(world.alice)
        answers, work = set(), set()
        for email in (world.alice.email, world.bob.email, "nobody@acme.example", "no address"):
            CountingHasher.hashed = 0
            response = browser().post("/sign-in/", {"email": email, "password": "wrong"})
            work.add(CountingHasher.hashed)
            page = WITHOUT_TOKEN.sub("", response.content.decode()).replace(email, "")
            answers.add((response.status_code, page))
    assert len(answers) == 1
    assert work == {1}


def test_repeated_wrong_passwords_lock_out_with_a_time_to_retry(world: World, superuser: Superuser) -> None:
    give_password(world.alice)
    client = browser()
    statuses = [
        client.post("/sign-in/", {"email": world.alice.email, "password": "wrong"}).status_code for _ in range(6)
    ]
    assert statuses == [422] * 5 + [429]
    locked = client.post("/sign-in/", {"email": world.alice.email, "password": PASSWORD})
    assert locked.status_code == 429  # even the right one
    assert 0 < int(locked["Retry-After"]) <= 30
    assert len(find_entries(superuser, "sign_in.failed", world.alice.member.id)) == 4
    assert len(find_entries(superuser, "sign_in.locked", world.alice.member.id)) == 1


def test_who_is_unknown_is_locked_out_alike(world: World) -> None:
    client = browser()
    body = {"email": "nobody@acme.example", "password": "wrong"}
    assert [client.post("/sign-in/", body).status_code for _ in range(6)] == [422] * 5 + [429]


def test_a_stranger_is_logged_by_a_keyed_hash_and_on_nobodys_audit_log(
    world: World, superuser: Superuser, caplog: pytest.LogCaptureFixture
) -> None:
    client = browser()
    for email in ("Nobody@acme.example", " nobody@acme.example", "other@acme.example", *["nobody@acme.example"] * 3):
        client.post("/sign-in/", {"email": email, "password": "a wrong one"})
    lines = [record.getMessage() for record in caplog.records if record.name == "governance.accounts.passwords"]
    hashes = [re.search(r"email_hash=([0-9a-f]{32}) address=[0-9.]+ request=\S+$", line) for line in lines]
    known = [found[1] for found in hashes if found]
    assert [line.partition(":")[0] for line in lines] == ["sign_in.failed"] * 5 + ["sign_in.locked"]
    assert (len(known), known[0] == known[1] == known[3], known[0] == known[2]) == (6, True, False)
    assert "acme.example" not in caplog.text
    assert "a wrong one" not in caplog.text
    assert sha256(b"nobody@acme.example").hexdigest()[:32] not in known, "who has no key cannot try addresses"
    assert find_entries(superuser, "sign_in.failed") == find_entries(superuser, "sign_in.locked") == []


def test_being_locked_out_here_locks_nobody_out_elsewhere(world: World) -> None:
    give_password(world.alice)
    for _ in range(6):
        sign_in(world.alice.email, "wrong")
    elsewhere = browser()
    elsewhere.defaults["REMOTE_ADDR"] = "198.51.100.9"
    assert is_in(sign_in(world.alice.email, client=elsewhere))


def test_the_right_password_begins_the_count_anew(world: World) -> None:
    give_password(world.alice)
    for _ in range(3):
        for _ in range(4):
            sign_in(world.alice.email, "wrong")
        assert is_in(sign_in(world.alice.email))


@override_settings(ATTEMPTS_FREE_BY_ADDRESS=7)
def test_one_address_that_tries_many_accounts_is_locked_out(world: World) -> None:
    client = browser()
    statuses = [
        client.post("/sign-in/", {"email": f"person{n}@acme.example", "password": "x"}).status_code for n in range(8)
    ]
    assert statuses == [422] * 7 + [429]


def test_a_forwarded_for_header_is_no_new_address(world: World) -> None:
    give_password(world.alice)
    statuses = []
    for n in range(6):
        headers = {"X-Forwarded-For": f"198.51.100.{n}", "X-Real-IP": f"198.51.100.{n}", "Forwarded": f"for=1.1.1.{n}"}
        body = {"email": world.alice.email, "password": "wrong"}
        statuses.append(browser().post("/sign-in/", body, headers=headers).status_code)
    assert statuses[-1] == 429


def test_a_new_password_by_mail_works_once_and_ends_every_session(world: World) -> None:
    give_password(world.alice)
    client = sign_in(world.alice.email)
    asked = browser().post("/sign-in/~/forgotten/", {"email": world.alice.email})
    assert asked.status_code == 200
    drain()
    link = find_mailed_link()
    assert mail.outbox[-1].to == [world.alice.email]
    assert browser().get(link).status_code == 200
    new = "another heron at dusk"
    assert browser().post(link, {"new": new})["Location"] == "/overview/"
    assert not is_in(client)
    assert not is_in(sign_in(world.alice.email))
    assert is_in(sign_in(world.alice.email, new))
    assert browser().post(link, {"new": "a third heron"}).status_code == 404


def test_asking_for_a_new_password_tells_nothing_of_who_has_an_account(world: World) -> None:
    pages = [
        WITHOUT_TOKEN.sub("", browser().post("/sign-in/~/forgotten/", {"email": email}).content.decode())
        for email in (world.alice.email, "nobody@acme.example")
    ]
    assert pages[0] == pages[1]
    drain()
    assert [message.to for message in mail.outbox] == [[world.alice.email]]


def test_an_account_is_not_mailed_without_end(world: World) -> None:
    for _ in range(9):
        assert browser().post("/sign-in/~/forgotten/", {"email": world.alice.email}).status_code == 200
    drain()
    assert len(mail.outbox) == 5


def test_an_expired_reset_link_sets_nothing(world: World, superuser: Superuser) -> None:
    browser().post("/sign-in/~/forgotten/", {"email": world.alice.email})
    drain()
    superuser().execute("UPDATE governance_passwordreset SET expires_at = now()")
    assert browser().post(find_mailed_link(), {"new": PASSWORD}).status_code == 404
    assert not is_in(sign_in(world.alice.email))


@each_case("weak", ["", "short", "password1234", "1234567890123", "alice@acme.example"])
def test_a_weak_password_is_refused_and_the_link_still_works(world: World, weak: str) -> None:
    browser().post("/sign-in/~/forgotten/", {"email": world.alice.email})
    drain()
    assert browser().post(find_mailed_link(), {"new": weak}).status_code == 422
    assert browser().post(find_mailed_link(), {"new": PASSWORD}).status_code == 303


def test_who_came_by_a_link_sets_a_password_and_who_has_one_must_know_it(world: World) -> None:
    client = signed_in(world.alice)
    assert client.post("/account/password/", {"new": PASSWORD}).status_code == 303
    assert is_in(client)
    other = "another heron at dusk"
    assert client.post("/account/password/", {"new": other}).status_code == 422
    assert client.post("/account/password/", {"new": other, "current": "wrong"}).status_code == 422
    assert client.post("/account/password/", {"new": other, "current": PASSWORD}).status_code == 303
    assert is_in(sign_in(world.alice.email, other))


def test_changing_it_signs_out_everywhere_else(world: World) -> None:
    give_password(world.alice)
    here, there = sign_in(world.alice.email), sign_in(world.alice.email)
    body = {"new": "another heron at dusk", "current": PASSWORD}
    assert here.post("/account/password/", body).status_code == 303
    assert is_in(here)
    assert not is_in(there)


def test_a_password_of_one_organisation_opens_no_other_until_the_address_is_proved(
    world: World, superuser: Superuser
) -> None:
    """Former versions let a link of an organisation set one."""
    person_add(world.other, world.alice.email, world.alice.role)
    give_password(world.alice)
    superuser().execute("UPDATE governance_user SET password_tenant = %s WHERE password <> ''", [world.other.id])
    page = sign_in(world.alice.email).get("/account/organisations/").content.decode()
    assert "Other" in page
    assert "Acme" not in page
    give_password(world.alice, "another heron at dusk")  # by mail: the address is proved
    chooser = sign_in(world.alice.email, "another heron at dusk").get("/sign-in/~/organisation/").content.decode()
    assert "Acme" in chooser
    assert "Other" in chooser


def test_a_password_is_in_no_table(world: World, superuser: Superuser) -> None:
    give_password(world.alice)
    assert PASSWORD not in str(read_all_rows(superuser()))


def test_forms_without_an_address_are_answered_by_the_form(world: World) -> None:
    for address in ("/sign-in/", "/sign-in/~/forgotten/"):
        refused = browser().post(address, {"email": "", "password": PASSWORD})
        assert (refused.status_code, 'id="id_email_error"' in refused.content.decode()) == (422, True)
        assert PASSWORD not in refused.content.decode()
