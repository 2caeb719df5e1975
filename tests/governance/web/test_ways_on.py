"""A page that says no, or has little to say, still shows who is signed in and where to go."""

import re
from collections.abc import Callable

import psycopg
import pytest
from django.test import Client

from tests.factories import World
from tests.governance.web.visitors import link_for, signed_in

NAVIGATION = 'class="side-scroll"'


def test_an_unknown_address_keeps_the_navigation(world: World) -> None:
    page = signed_in(world.alice).get("/no/such/page/")
    assert page.status_code == 404
    assert NAVIGATION in page.content.decode()
    assert "Acme" in page.content.decode()
    assert NAVIGATION not in Client().get("/no/such/page/").content.decode()


def test_a_form_that_is_too_old_keeps_the_navigation(world: World) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = signed_in(world.alice).cookies
    page = strict.post("/chat/", {"content": "Hello?"})
    assert page.status_code == 403
    assert "This form has expired" in page.content.decode()
    assert NAVIGATION in page.content.decode()


def test_an_unknown_address_is_reported_without_the_database(
    world: World, superuser: Callable[[], psycopg.Connection]
) -> None:
    client = signed_in(world.alice)
    superuser().execute("ALTER TABLE governance_member RENAME TO gone")
    page = client.get("/no/such/page/")
    assert page.status_code == 404
    assert "There is nothing here." in page.content.decode()


def test_a_form_sent_to_half_an_address_is_not_led_on(world: World) -> None:
    client = signed_in(world.alice)
    assert client.post("/chat", {"content": "Hello?"}).status_code == 404
    assert client.get("/chat")["Location"] == "/chat/"


@pytest.mark.parametrize("link", ["spent", "/sign-in/made-up/"])
def test_a_link_that_no_longer_works_says_so_before_it_is_pressed(world: World, link: str) -> None:
    if link == "spent":
        link = link_for(world.alice)
        Client().post(link)
    page = Client().get(link)
    assert page.status_code == 404
    assert "This link no longer works" in page.content.decode()


def test_a_removed_members_link_no_longer_works(world: World, superuser: Callable[[], psycopg.Connection]) -> None:
    link = link_for(world.alice)
    superuser().execute("UPDATE governance_member SET removed_at = now() WHERE id = %s", [world.alice.member.id])
    assert Client().get(link).status_code == 404


def test_an_auditor_begins_on_a_page_of_their_own(world: World) -> None:
    client = Client()
    assert client.post(link_for(world.ada))["Location"] == "/audit/"
    assert client.get("/")["Location"] == client.get("/sign-in/")["Location"] == "/audit/"
    page = client.get("/you/").content.decode()
    for shown in ("Signed in as ada", "auditor", "read the audit log", "Sign out"):
        assert shown in page
    assert "read memories" not in page
    assert 'href="/chat/"' not in page
    refused = client.get("/chat/").content.decode()
    assert 'href="/chat/"' not in refused


def test_the_page_of_oneself_tells_each_role_what_it_may_do(world: World) -> None:
    page = signed_in(world.bob).get("/you/").content.decode()
    may = ["read memories", "chat", "see jobs", "speak as personas", "make personas", "change personas"]
    assert re.findall(r"<li>(.*?)</li>", page) == may
    assert Client().get("/you/")["Location"] == "/sign-in/?next=%2Fyou%2F"


def test_granted_action_is_not_shown_as_a_right_of_the_role(world: World) -> None:
    olivia = world.client("olivia")
    namespace = olivia.post("memories/", {"content": "Rota.", "namespace": "/rota"}).json["results"][0]["namespace"]
    grant = {
        "principal": {"kind": "member", "id": str(world.ada.member.id)},
        "object": {"type": "namespace", "id": namespace["id"]},
        "action": "read",
    }
    ada = signed_in(world.ada)
    assert "single objects" not in ada.get("/you/").content.decode()
    made = olivia.post("grants/", grant)
    assert made.status == 201, made.json
    by_role, told, by_grant = ada.get("/you/").content.decode().partition("Your rights on single objects")
    assert told
    assert "read memories" not in by_role
    assert re.findall(r"<li>(.*?)</li>", by_grant) == ["read memories"]
    assert 'href="/access/"' in by_grant
    assert "/rota" in ada.get("/access/").content.decode()
    assert olivia.delete(f"grants/{made.json['id']}/").status == 204
    assert "single objects" not in ada.get("/you/").content.decode()


@pytest.mark.parametrize(
    ("who", "address", "told"),
    [("alice", "/no/such/page/", "此地址没有任何内容。"), ("ada", "/chat/", "缺少权限 conversation.use。")],
)
def test_a_refusal_speaks_chinese_throughout(world: World, who: str, address: str, told: str) -> None:
    client = signed_in(world.person(who))
    page = client.get(address, headers={"Accept-Language": "zh-CN"}).content.decode()
    assert told in page
    assert "is missing" not in page
    assert "There is nothing" not in page


def test_chinese_sentences_stand_without_a_space_between_them(world: World) -> None:
    headers = {"Accept-Language": "zh-CN", "Accept": "text/event-stream"}
    told = signed_in(world.ada).get("/chat/", headers=headers).json()["detail"]
    assert told == "你无权进行此操作。你的角色不允许这样做，请联系所有者或管理员。"


def test_the_documentation_of_the_api_is_a_page_of_the_product(world: World) -> None:
    page = signed_in(world.alice).get("/api/docs/").content.decode()
    assert NAVIGATION in page
    assert 'href="/chat/"' in page
    assert "js/theme.js" in page
    assert "Acme" in page
