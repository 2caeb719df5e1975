"""Sessions: seen by their person, ended by their person, and out at their next request."""

from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from django.conf import settings

from governance.accounts.cleanup import accounts_tidy
from governance.members.services import member_remove, member_role_change
from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.governance.accounts.people import ADDRESS, browser, find_entries, give_password, is_in, sign_in
from tests.governance.web.visitors import link_for, signed_in

Superuser = Callable[[], psycopg.Connection]


def _sessions(superuser: Superuser, world: World) -> list[str]:
    rows = superuser().execute(
        "SELECT id::text FROM governance_browsersession WHERE user_id = %s AND ended_at IS NULL ORDER BY id",
        [world.alice.member.user_id],
    )
    return [row[0] for row in rows]


def test_a_person_sees_where_they_are_signed_in(world: World) -> None:
    give_password(world.alice)
    here = sign_in(world.alice.email, client=browser(agent="Firefox on a phone"))
    sign_in(world.alice.email, client=browser(agent="<script>alert(1)</script>"))
    page = here.get("/account/").content.decode()
    assert "Firefox on a phone" in page
    assert ADDRESS in page
    assert page.count("this one") == 1
    assert "<script>alert" not in page


def test_a_revoked_session_is_out_at_its_next_request(world: World, superuser: Superuser) -> None:
    give_password(world.alice)
    there, here = sign_in(world.alice.email), sign_in(world.alice.email)
    first, _ = _sessions(superuser, world)
    assert is_in(there)
    assert here.post(f"/account/sessions/{first}/end/").status_code == 303
    assert there.get("/chat/").status_code == 303
    assert there.get("/api/v1/me/").status_code == 401
    assert is_in(here)
    assert len(find_entries(superuser, "session.revoked", world.alice.member.id)) == 1


def test_all_others_are_ended_at_once(world: World) -> None:
    give_password(world.alice)
    others, here = [sign_in(world.alice.email) for _ in range(3)], sign_in(world.alice.email)
    part = here.post("/account/sessions/end-others/", headers={"HX-Request": "true"})
    assert part.status_code == 200
    assert "<html" not in part.content.decode()
    assert not any(is_in(other) for other in others)
    assert is_in(here)


def test_signing_out_ends_the_session_on_the_server(world: World) -> None:
    client = signed_in(world.alice)
    kept = client.cookies[settings.SESSION_COOKIE_NAME].value
    client.post("/sign-out/")
    thief = browser()
    thief.cookies[settings.SESSION_COOKIE_NAME] = kept
    assert not is_in(thief)


def test_nobody_ends_anothers_session(world: World, superuser: Superuser) -> None:
    alice = signed_in(world.alice)
    (session,) = _sessions(superuser, world)
    for who in ("bob", "olivia", "charlie"):
        refused = signed_in(world.person(who)).post(f"/account/sessions/{session}/end/")
        assert refused.status_code == 404
    assert is_in(alice)


def test_a_session_ends_with_its_time(world: World, superuser: Superuser) -> None:
    client = signed_in(world.alice)
    superuser().execute("UPDATE governance_browsersession SET expires_at = now()")
    assert not is_in(client)


def test_a_stolen_session_row_is_no_session(world: World, superuser: Superuser) -> None:
    """The row of the list is no key: the browser's own is another, and only its hash is stored."""
    signed_in(world.alice)
    (session,) = _sessions(superuser, world)
    thief = browser()
    thief.cookies[settings.SESSION_COOKIE_NAME] = session
    assert not is_in(thief)


def test_last_use_is_noted_once_in_a_while(world: World, superuser: Superuser) -> None:
    client = signed_in(world.alice)
    read = "SELECT last_used_at FROM governance_browsersession"
    before = superuser().execute(read).fetchone()
    is_in(client)
    assert superuser().execute(read).fetchone() == before
    superuser().execute("UPDATE governance_browsersession SET last_used_at = now() - interval '1 hour'")
    is_in(client)
    after = superuser().execute(read).fetchone()
    assert before is not None
    assert after is not None
    assert after[0] - before[0] < timedelta(minutes=1)


def test_a_new_role_counts_from_the_next_request(world: World) -> None:
    alice = signed_in(world.alice)
    assert alice.get("/settings/members/").status_code == 403
    member_role_change(actor=world.olivia.actor, member_id=world.alice.member.id, role=RoleName.ADMIN)
    assert alice.get("/settings/members/").status_code == 200
    member_role_change(actor=world.olivia.actor, member_id=world.alice.member.id, role=RoleName.VIEWER)
    assert alice.get("/settings/members/").status_code == 403
    assert world.client("alice").post("memories/", {"content": "x"}).status == 403


def test_who_is_removed_is_out_at_the_next_request_by_session_and_key(world: World) -> None:
    alice = signed_in(world.alice)
    member_remove(actor=world.olivia.actor, member_id=world.alice.member.id)
    assert alice.get("/chat/").status_code == 303
    assert alice.get("/api/v1/me/").status_code == 401
    assert world.client("alice").get("me/").status == 401


def test_of_several_organisations_one_is_chosen_and_another_entered(world: World) -> None:
    person_add(world.other, world.alice.email, RoleName.VIEWER)
    give_password(world.alice)
    client = sign_in(world.alice.email)
    assert not is_in(client)
    chooser = client.get("/sign-in/~/organisation/").content.decode()
    assert "Acme" in chooser
    assert "Other" in chooser
    assert client.post("/sign-in/~/organisation/", {"organisation": "nonsense"}).status_code == 200
    client.post("/sign-in/~/organisation/", {"organisation": world.alice.member.id})
    assert client.get("/api/v1/me/").json()["tenant"]["slug"] == "acme"


def test_another_organisation_is_entered_in_the_same_session(world: World, superuser: Superuser) -> None:
    joined = person_add(world.other, world.alice.email, RoleName.VIEWER)
    give_password(world.alice)
    client = sign_in(world.alice.email)
    client.post("/sign-in/~/organisation/", {"organisation": world.alice.member.id})
    for wrong in (world.charlie.member.id, world.bob.member.id, "nonsense"):
        assert client.post("/account/organisations/", {"organisation": wrong}).status_code == 404
    assert client.post("/account/organisations/", {"organisation": joined.member.id}).status_code == 303
    assert client.get("/api/v1/me/").json()["tenant"]["slug"] == "other"
    assert find_entries(superuser, "member.signed_in", joined.member.id)[-1]["way"] == "switch"
    assert len(_sessions(superuser, world)) == 1


def test_one_organisations_link_does_not_lead_into_another(world: World) -> None:
    joined = person_add(world.other, world.alice.email, RoleName.VIEWER)
    give_password(world.alice)
    own = sign_in(world.alice.email)
    client = browser()
    assert client.post(link_for(joined, by=world.charlie.actor))["Location"] == "/overview/"  # and no choice is offered
    refused = client.post("/account/organisations/", {"organisation": world.alice.member.id})
    assert refused.status_code == 403
    page = client.get("/account/").content.decode()
    assert page.count("Sign out everywhere else") == 0  # their sessions elsewhere are not shown here
    assert client.post("/account/sessions/end-others/").status_code == 403
    assert own.get("/sign-in/~/organisation/").status_code == 200


@pytest.mark.parametrize("interval", ["31 days", "400 days"])
def test_old_sessions_are_tidied_away_and_others_stay(world: World, superuser: Superuser, interval: str) -> None:
    signed_in(world.alice)
    bob = signed_in(world.bob)
    superuser().execute(
        "UPDATE governance_browsersession SET expires_at = now() - %s::interval WHERE user_id = %s",
        [interval, world.alice.member.user_id],
    )
    assert accounts_tidy() == 1
    assert is_in(bob)
