"""Tests of addresses that an attacker tried: each answers with a clear error and none with 5xx."""

import json

import pytest
from django.conf import settings
from django.test import Client

from governance.actor import Actor
from governance.database import acting
from governance.models import AuditEntry
from governance.tenants.services import command_line_actor, sign_in_link_create
from governance.vocabulary import Outcome
from tests.factories import World
from tests.harness.cases import each_case


def signed_in(world: World) -> Client:
    """Alice's browser, which checks CSRF as a real one is checked."""
    actor: Actor = command_line_actor(world.alice.actor.tenant_id)
    token = sign_in_link_create(actor=actor, member=world.alice.member).url.rsplit("/", 2)[1]
    browser = Client(enforce_csrf_checks=True)
    page = browser.get(f"/sign-in/{token}/")
    csrf = page.cookies[settings.CSRF_COOKIE_NAME].value
    assert browser.post(f"/sign-in/{token}/", {"csrfmiddlewaretoken": csrf}).status_code == 303
    return browser


@pytest.mark.parametrize("path", ["memories/", "memories/search/", "conversations/"])
def test_session_without_a_csrf_token_is_refused_and_recorded(world: World, path: str) -> None:
    reply = signed_in(world).post(f"/api/v1/{path}", {"content": "x"}, content_type="application/json")
    assert (reply.status_code, reply.json()["code"]) == (403, "forbidden")
    with acting(world.olivia.actor):
        assert AuditEntry.objects.filter(outcome=Outcome.DENIED, detail__rule="csrf").count() == 1


def test_the_csrf_token_is_a_new_one_after_signing_in(world: World) -> None:
    browser = signed_in(world)
    before = browser.cookies[settings.CSRF_COOKIE_NAME].value
    assert before != signed_in(world).cookies[settings.CSRF_COOKIE_NAME].value


@pytest.mark.parametrize("cookie", ['"\\000\\000aaaaaaaa"', "x" * 3000, "aaaaaaaa"])
def test_an_odd_session_cookie_is_nobodys(world: World, cookie: str) -> None:
    assert Client(headers={"cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"}).get("/api/v1/me/").status_code == 401


def test_a_next_page_in_any_script_is_remembered(world: World) -> None:
    assert Client().get("/sign-in/?next=/%E2%80%AEx").status_code == 200


@pytest.mark.parametrize("version", ["x%0d%0aSet-Cookie:%20a=b", "%00", "2"])
def test_the_schema_has_one_version_whatever_is_asked(world: World, version: str) -> None:
    reply = Client().get(f"/api/schema/?format=json&version={version}")
    assert reply.status_code == 200
    assert "Set-Cookie" not in reply["Content-Disposition"]


@each_case(
    "filters",
    [
        {"importance": {"gt": 10**400}},
        {"heat": {"lt": 10**400}},
        {"state": []},
        {"state": {"eq": {}}},
        {"state": {"in": [[]]}},
        {"event_time": {"gt": "0001-01-01T00:00:00+23:59"}},
        {"event_time": {"lt": "9999-12-31T23:59:59-23:59"}},
        {"\ud800": "x"},
        {"speaker": "\ud800"},
        {"metadata.\ud800": "x"},
        {"speaker": {"in": [str(number) for number in range(100)]}, "OR": [{"tags": {"in": ["x"] * 90}}] * 5},
    ],
)
def test_filters_that_mean_nothing_are_a_400(world: World, filters: object) -> None:
    reply = world.client("alice").post("memories/search/", {"query": "x", "filters": filters})
    assert reply.status == 400


@pytest.mark.parametrize("body", [{"\ud800": 1}, {"content": "x", "sensitivity": "\ud800"}])
def test_lone_surrogate_in_a_body_gives_an_encodable_400(world: World, body: object) -> None:
    reply = world.client("alice").post("memories/", body)
    assert reply.status == 400
    assert json.dumps(reply.json, ensure_ascii=False).encode()


def test_a_long_chinese_question_is_answered(world: World) -> None:
    reply = world.client("alice").post("memories/search/", {"query": "王" * 32_000})
    assert reply.status == 200


def test_the_token_of_a_link_is_not_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    from governance.web.log_filter import WithoutLinks

    caplog.handler.addFilter(WithoutLinks())
    Client().put("/sign-in/a-secret-token-of-somebody/")
    assert caplog.records
    assert "a-secret-token" not in caplog.text
