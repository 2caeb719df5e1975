"""The pages of integrations and webhooks, without JavaScript: only who manages operations uses them."""

import re
from collections.abc import Iterator

import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer

from governance.database import acting
from governance.models import Webhook, WebhookDelivery
from governance.webhooks.rules import PREFIX
from tests.factories import World
from tests.governance.filled_tenants import drain
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case


@pytest.fixture
def inside() -> Iterator[None]:
    """The operator allows private addresses, where the servers of these tests are."""
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        yield


def test_admin_adds_tests_replays_and_removes_a_webhook(world: World, httpserver: HTTPServer, inside: None) -> None:
    httpserver.expect_request("/hook").respond_with_data("")
    olivia = signed_in(world.olivia)
    form = {"url": httpserver.url_for("/hook"), "events": ["memory.created", "memory.deleted"]}
    shown = olivia.post("/integrations/webhooks/new/", form).content.decode()
    assert PREFIX in shown
    with acting(world.olivia.actor):
        hook = Webhook.objects.get()
    address = f"/integrations/webhooks/{hook.id}/"
    assert PREFIX not in olivia.get(address).content.decode(), "the secret is shown once"
    assert "The test was delivered." in olivia.post(f"{address}test/").content.decode()
    world.client("alice").post("memories/", {"content": "It is windy."})
    drain()
    page = olivia.get(address).content.decode()
    assert "memory.created" in page
    assert re.search(r"Delivered", page)
    with acting(world.olivia.actor):
        delivery = WebhookDelivery.objects.get()
    assert olivia.post(f"/integrations/deliveries/{delivery.id}/replay/").status_code == 303
    drain()
    assert len(httpserver.log) == 3
    assert PREFIX in olivia.post(f"{address}rotate/").content.decode()
    assert olivia.post(f"{address}switch/", {"enabled": "no"}).status_code == 303
    assert "Off" in olivia.get("/integrations/").content.decode()
    assert olivia.post(f"{address}remove/").status_code == 303
    assert "No webhooks yet" in olivia.get("/integrations/").content.decode()


@each_case(
    ("form", "told"),
    [
        ({"url": "http://hooks.example/", "events": ["memory.created"]}, "Begin it with https://."),
        ({"url": "https://10.0.0.1/", "events": ["memory.created"]}, "10.0.0.1 is inside a private"),
        ({"url": "https://hooks.example/"}, "This field is required."),
        ({"url": "https://hooks.example/", "events": ["memory.created"], "namespace": "x"}, "Write a path such as"),
    ],
)
def test_bad_form_is_explained_and_keeps_what_was_typed(world: World, form: dict[str, object], told: str) -> None:
    response = signed_in(world.olivia).post("/integrations/webhooks/new/", form)
    page = response.content.decode()
    assert response.status_code == 422
    assert told in page
    assert str(form["url"]) in page


def test_member_is_refused_and_stranger_finds_nothing(world: World) -> None:
    olivia = world.client("olivia")
    hook = olivia.post("webhooks/", {"url": "https://hooks.example/", "events": ["memory.*"]}).json["id"]
    for who, status in ((world.alice, 403), (world.charlie, 404)):
        visitor = signed_in(who)
        assert visitor.get(f"/integrations/webhooks/{hook}/").status_code == status
        for action in ("test", "rotate", "switch", "remove"):
            assert visitor.post(f"/integrations/webhooks/{hook}/{action}/").status_code == status
    assert signed_in(world.alice).get("/integrations/").status_code == 403
    assert olivia.get(f"webhooks/{hook}/").json["enabled"] is True
