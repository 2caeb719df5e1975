"""Signing in by a one-time link, and out again."""

from collections.abc import Callable

import psycopg
from django.conf import settings
from django.test import Client, override_settings

from tests.factories import World
from tests.governance.web.visitors import link_for, signed_in
from tests.harness.cases import each_case

MISSING = "00000000-0000-7000-8000-000000000000"
Superuser = Callable[[], psycopg.Connection]


def count_entries(superuser: Superuser, verb: str) -> int:
    row = superuser().execute("SELECT count(*) FROM governance_auditentry WHERE verb = %s", [verb]).fetchone()
    assert row is not None
    return int(row[0])


def test_looking_at_a_link_does_not_spend_it(world: World) -> None:
    link, client = link_for(world.alice), Client()
    for _ in range(3):
        assert client.get(link).status_code == 200
    assert settings.SESSION_COOKIE_NAME not in client.cookies
    response = client.post(link)
    assert (response.status_code, response["Location"]) == (303, "/overview/")
    assert client.get("/chat/").status_code == 200


def test_a_link_works_once(world: World) -> None:
    link = link_for(world.alice)
    assert Client().post(link).status_code == 303
    again = Client().post(link)
    assert again.status_code == 404
    assert "This link no longer works" in again.content.decode()
    assert settings.SESSION_COOKIE_NAME not in again.cookies


def test_pages_tell_times_in_the_zone_of_the_first_browser_and_others_see_the_chosen_name(world: World) -> None:
    for zone, shown in (("Mars/Base", "UTC"), ("Asia/Tokyo", "Asia/Tokyo"), ("Europe/Paris", "Asia/Tokyo")):
        client = Client()
        client.cookies["memos_zone"] = zone
        person = world.bob if zone == "Mars/Base" else world.alice
        assert client.post(link_for(person)).status_code == 303
        page = client.get("/account/").content.decode()
        assert f'value="{shown}"' in page
    assert "Use this browser&#x27;s: Europe/Paris" in page or "Use this browser's: Europe/Paris" in page
    world.client("alice").post("personas/", {"name": "Alice at work"})
    for taken in ("", "bob", "a\x00b", "Alice at work"):
        assert client.post("/account/name/", {"name": taken}).status_code == 422
    assert client.post("/account/name/", {"name": " Alice  Ando "}).status_code == 303
    page = client.get("/account/").content.decode()
    assert "Alice Ando" in page
    names = [persona["name"] for persona in world.client("alice").get("personas/").json["results"]]
    assert sorted(name for name in names if "lice" in name) == ["Alice Ando", "Alice at work"]
    assert "Alice Ando" in signed_in(world.olivia).get("/settings/members/").content.decode()


def test_an_expired_link_signs_nobody_in(world: World, superuser: Superuser) -> None:
    link = link_for(world.alice)
    superuser().execute("UPDATE governance_signinlink SET expires_at = now() - interval '1 second'")
    assert Client().post(link).status_code == 404


def test_a_made_up_link_signs_nobody_in(world: World) -> None:
    assert Client().post("/sign-in/made-up/").status_code == 404


def test_the_page_of_a_link_tells_its_address_to_nobody(world: World) -> None:
    response = Client().get(link_for(world.alice))
    assert response["Referrer-Policy"] == "strict-origin"
    assert response["Cache-Control"] == "no-store"


def test_no_form_is_taken_without_its_token(world: World) -> None:
    link = link_for(world.alice)
    client = Client(enforce_csrf_checks=True)
    refused = client.post(link)
    assert refused.status_code == 403
    assert "This form has expired" in refused.content.decode()
    assert Client().post(link).status_code == 303


def test_it_returns_to_the_page_that_was_wanted(world: World) -> None:
    client = Client()
    wanted = "/memories/019f0000-0000-7000-8000-000000000000/"
    asked = client.get(wanted)
    assert asked["Location"] == f"/sign-in/?next={wanted.replace('/', '%2F')}"
    client.get(asked["Location"])
    assert client.post(link_for(world.alice))["Location"] == wanted


@each_case("elsewhere", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil"])
def test_it_never_returns_to_another_site(world: World, elsewhere: str) -> None:
    client = Client()
    client.get("/sign-in/", {"next": elsewhere})
    client.cookies[f"memos_next_{settings.INSTALLATION_TAG}"] = elsewhere
    assert client.post(link_for(world.alice))["Location"] == "/overview/"


def test_a_session_of_before_is_not_carried_over(world: World) -> None:
    client = signed_in(world.charlie)
    before = client.cookies[settings.SESSION_COOKIE_NAME].value
    client.post(link_for(world.alice))
    assert client.cookies[settings.SESSION_COOKIE_NAME].value != before
    assert "Acme" in client.get("/chat/").content.decode()


def test_signing_out_ends_the_session_and_is_in_the_audit_log(world: World, superuser: Superuser) -> None:
    client = signed_in(world.alice)
    assert count_entries(superuser, "member.signed_in") == 1
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/")["Location"] == "/sign-in/"
    assert client.get("/chat/").status_code == 303
    assert count_entries(superuser, "member.signed_out") == 1


def test_a_member_who_was_removed_is_signed_out(world: World, superuser: Superuser) -> None:
    client = signed_in(world.alice)
    superuser().execute("UPDATE governance_member SET removed_at = now() WHERE id = %s", [world.alice.member.id])
    assert client.get("/chat/")["Location"] == "/sign-in/?next=%2Fchat%2F"


def test_the_bare_address_leads_on(world: World) -> None:
    assert Client().get("/")["Location"] == "/sign-in/"
    client = signed_in(world.alice)
    assert client.get("/")["Location"] == "/overview/"
    assert client.get("/sign-in/")["Location"] == "/overview/"


def test_scripts_get_401_instead_of_the_sign_in_page(world: World) -> None:
    part = Client().get("/chat/", headers={"HX-Request": "true"})
    assert (part.status_code, part["HX-Redirect"]) == (204, "/sign-in/")
    stream = Client().post("/chat/", headers={"Accept": "text/event-stream"})
    assert (stream.status_code, stream.json()["sign_in"]) == (401, "/sign-in/")


def test_what_was_typed_is_shown_after_the_session_has_ended(world: World) -> None:
    client = signed_in(world.alice)
    client.cookies.clear()
    text = "The heron nests by the weir since spring."
    form = {"content": text, "csrfmiddlewaretoken": "x" * 64, "next": "/memories/new/"}
    for headers in ({}, {"HX-Request": "true"}):
        answer = client.post("/memories/new/", form, headers={**headers, "Referer": "http://testserver/memories/?q=a"})
        page = answer.content.decode()
        assert answer.status_code == 401
        assert f"readonly>{text}</textarea>" in page
        assert "xxxx" not in page
        assert "/sign-in/?next=" in page
    assert "readonly>Buy milk.</textarea>" in client.post("/memories/new/", {"content": "Buy milk."}).content.decode()
    assert client.post("/memories/new/", {"content": "Short."})["Location"] == "/sign-in/"


def test_the_language_can_be_switched(world: World) -> None:
    client = signed_in(world.alice)
    assert 'lang="en"' in client.get("/chat/").content.decode()
    client.post("/language/", {"language": "zh-hans", "next": "/chat/"})
    page = client.get("/chat/").content.decode()
    assert '<html lang="zh-hans">' in page
    assert "问问记住了什么" in page


def test_the_way_in_tells_how_long_a_link_works_and_names_nobody(world: World) -> None:
    with override_settings(SIGN_IN_LINK_HOURS=3):
        page = Client().get("/sign-in/").content.decode()
        spent = Client().post("/sign-in/no-such-link/").content.decode()
    assert "only for 3 hours" in page
    assert "older than 3 hours" in spent
    assert "--tenant SLUG --email EMAIL" in page


@each_case(
    ("address", "above"),
    [
        ("/memories/bulk/", "/memories/"),
        ("/sign-out/", "/"),
        (f"/memories/{MISSING}/freeze/", f"/memories/{MISSING}/"),
        (f"/chat/{MISSING}/goals/", f"/chat/{MISSING}/"),
    ],
)
def test_opening_an_address_of_a_form_leads_to_the_page_above(world: World, address: str, above: str) -> None:
    client = signed_in(world.alice)
    opened = client.get(address, headers={"accept": "text/html,*/*"})
    assert (opened.status_code, opened["Location"]) == (302, above)
    assert client.get(address).status_code == 405, "programs are told the method"
