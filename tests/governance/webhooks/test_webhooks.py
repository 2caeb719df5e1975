"""Webhooks: an event is delivered after its transaction, signed, and retried for a day; admins alone set them."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, Forbidden, Invalid, NotFound
from governance.models import AuditEntry, OutboxEvent, Webhook, WebhookDelivery
from governance.outbound import UNREACHED
from governance.pages import First
from governance.vocabulary import DeliveryStatus, Topic, Verb
from governance.webhooks.rules import PREFIX, TEST_EVENT, event_names, expand_events, pause_after, sign_headers
from governance.webhooks.services import (
    MOST_WEBHOOKS,
    WebhookDraft,
    WebhookMade,
    deliveries_list,
    delivery_replay,
    webhook_create,
    webhook_remove,
    webhook_rotate,
    webhook_test,
    webhook_update,
    webhooks_list,
)
from tests.factories import World
from tests.governance.filled_tenants import drain
from tests.harness.cases import each_case
from tests.vault.api.contract import contract, fields_at_fault

Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def inside() -> Iterator[None]:
    """The operator allows private addresses, where the servers of these tests are."""
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        yield


def create_webhook(world: World, server: HTTPServer, **draft: Any) -> WebhookMade:
    values = {"url": server.url_for("/hook"), "events": ["memory.*"], **draft}
    return webhook_create(actor=world.olivia.actor, draft=WebhookDraft(**values))


def bodies(server: HTTPServer) -> list[dict[str, Any]]:
    return [json.loads(request.get_data()) for request, _ in server.log]


def is_signed_with(request: Request, secret: str) -> bool:
    """Return whether one of the signatures is made with `secret`, as Standard Webhooks 1.0 defines it."""
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.get_data()
    digest = hmac.digest(base64.b64decode(secret.removeprefix(PREFIX)), signed, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}" in request.headers["webhook-signature"].split(" ")


def deliveries(world: World, hook: WebhookMade) -> list[WebhookDelivery]:
    return deliveries_list(actor=world.olivia.actor, webhook_id=hook.webhook.id, pages=First(100))


def due_now(superuser: Superuser) -> None:
    """End all pauses, as time would."""
    root = superuser()
    root.execute("UPDATE governance_webhook SET next_at = now() - interval '1 second'")
    root.execute("UPDATE governance_outboxevent SET available_at = now() WHERE topic = 'webhook.deliver'")


def test_memory_is_added_and_webhook_receives_signed_ids_without_content(
    world: World, httpserver: HTTPServer, inside: None
) -> None:
    httpserver.expect_request("/hook", method="POST").respond_with_data("")
    hook = create_webhook(world, httpserver)
    reply = world.client("alice").post("memories/", {"content": "The owl nests in the barn."})
    drain()
    (body,) = [body for body in bodies(httpserver) if body["type"] == "memory.created"]
    memory_id = reply.json["results"][0]["id"]
    assert body["data"] == {"object": "memory", "ids": [memory_id]} | {
        name: value for name, value in body["data"].items() if name == "version"
    }
    (request, _) = httpserver.log[0]
    assert is_signed_with(request, hook.secret)
    assert not is_signed_with(request, PREFIX + base64.b64encode(b"another secret").decode())
    assert b"owl" not in b"".join(request.get_data() for request, _ in httpserver.log)
    with acting(world.olivia.actor):
        assert AuditEntry.objects.filter(id=body["id"], verb="memory.created").exists()
    assert {delivery.status for delivery in deliveries(world, hook)} == {DeliveryStatus.DELIVERED}


def test_transaction_is_rolled_back_and_nothing_is_delivered(
    world: World, httpserver: HTTPServer, inside: None
) -> None:
    hook = create_webhook(world, httpserver)
    actor = world.olivia.actor
    with acting(actor):
        record(actor=actor, verb=Verb.MEMORY_CREATED, object_type="memory", object_ids=[])
        assert WebhookDelivery.objects.count() == 1
        transaction.set_rollback(True)
    drain()
    assert deliveries(world, hook) == []
    assert not httpserver.log


def test_event_of_another_area_read_or_denial_is_not_delivered(
    world: World, httpserver: HTTPServer, inside: None
) -> None:
    httpserver.expect_request("/hook").respond_with_data("")
    memory_id = world.client("alice").post("memories/", {"content": "It rains."}).json["results"][0]["id"]
    hook = create_webhook(world, httpserver)
    assert world.client("alice").get(f"memories/{memory_id}/").status == 200
    assert world.client("bob").delete(f"memories/{memory_id}/").status == 404
    world.client("olivia").post("personas/", {"name": "Helper", "kind": "agent"})
    drain()
    assert deliveries(world, hook) == []
    world.client("alice").delete(f"memories/{memory_id}/")
    drain()
    assert [body["type"] for body in bodies(httpserver)] == ["memory.deleted"]


def test_webhook_with_a_namespace_receives_only_what_lies_below_it(
    world: World, httpserver: HTTPServer, inside: None
) -> None:
    httpserver.expect_request("/hook").respond_with_data("")
    create_webhook(world, httpserver, events=["memory.created"], filters={"namespace": "/birds"})
    olivia = world.client("olivia")
    inner = olivia.post("memories/", {"content": "An owl.", "namespace": "/birds/night"}).json["results"][0]["id"]
    olivia.post("memories/", {"content": "A pike.", "namespace": "/fish"})
    olivia.post("memories/", {"content": "A bird house.", "namespace": "/birdshouse"})
    drain()
    assert [body["data"]["ids"] for body in bodies(httpserver)] == [[inner]]


def test_failed_delivery_pauses_all_of_the_webhook_and_succeeds_later(
    world: World, httpserver: HTTPServer, inside: None, superuser: Superuser
) -> None:
    httpserver.expect_oneshot_request("/hook").respond_with_data("", 500)
    hook = create_webhook(world, httpserver, events=["memory.created"])
    for content in ("The first.", "The second.", "The third."):
        world.client("alice").post("memories/", {"content": content})
    drain()
    assert len(httpserver.log) == 1, "the others wait for the end of the pause"
    with acting(world.olivia.actor):
        assert OutboxEvent.objects.filter(topic=Topic.WEBHOOK_DELIVER, done_at=None).count() == 1, "one task a pause"
    waiting = deliveries(world, hook)
    assert [delivery.status for delivery in waiting] == [DeliveryStatus.PENDING] * 3
    assert sorted(delivery.attempts for delivery in waiting) == [0, 0, 1]
    assert "500" in next(delivery.last_error for delivery in waiting if delivery.attempts)
    httpserver.expect_request("/hook").respond_with_data("")
    due_now(superuser)
    drain()
    assert [delivery.status for delivery in deliveries(world, hook)] == [DeliveryStatus.DELIVERED] * 3
    assert webhooks_list(actor=world.olivia.actor, pages=First(1))[0].failures == 0
    ids = [body["id"] for body in bodies(httpserver)]
    assert len(ids) == 4
    assert len(set(ids)) == 3


def test_success_beside_a_failure_ends_the_pause_for_all_that_wait(
    world: World, httpserver: HTTPServer, inside: None, superuser: Superuser
) -> None:
    """Two requests are on their way, and the pause that one of them began has not ended when the other succeeds."""
    root, answered = superuser(), list[str]()

    def answer(request: Request) -> Response:
        if not answered:
            root.execute("UPDATE governance_webhook SET failures = 1, next_at = now() + interval '1 hour'")
        answered.append(request.headers["webhook-id"])
        return Response("", 200)

    httpserver.expect_request("/hook").respond_with_handler(answer)
    hook = create_webhook(world, httpserver, events=["memory.created"])
    for content in ("The first.", "The second."):
        world.client("alice").post("memories/", {"content": content})
    drain()
    assert [delivery.status for delivery in deliveries(world, hook)] == [DeliveryStatus.DELIVERED] * 2


def test_delivery_fails_after_a_day_and_can_be_replayed(
    world: World, httpserver: HTTPServer, inside: None, superuser: Superuser
) -> None:
    httpserver.expect_request("/hook").respond_with_data("", 404)
    hook = create_webhook(world, httpserver, events=["memory.created"])
    world.client("alice").post("memories/", {"content": "It snows."})
    drain()
    with pytest.raises(Conflict):
        delivery_replay(actor=world.olivia.actor, delivery_id=deliveries(world, hook)[0].id)
    superuser().execute("UPDATE governance_webhookdelivery SET due_since = now() - interval '24 hours'")
    due_now(superuser)
    drain()
    (failed,) = deliveries(world, hook)
    assert (failed.status, failed.attempts) == (DeliveryStatus.FAILED, 2)
    with acting(world.olivia.actor):
        assert not OutboxEvent.objects.filter(topic=Topic.WEBHOOK_DELIVER, done_at=None).exists()
    httpserver.clear()
    httpserver.expect_request("/hook").respond_with_data("")
    delivery_replay(actor=world.olivia.actor, delivery_id=failed.id)
    drain()
    assert deliveries(world, hook)[0].status == DeliveryStatus.DELIVERED
    assert bodies(httpserver)[0]["id"] == str(failed.entry_id)


def test_after_a_day_all_that_wait_fail_and_younger_ones_are_tried(
    world: World, httpserver: HTTPServer, inside: None, superuser: Superuser
) -> None:
    httpserver.expect_request("/hook").respond_with_data("", 500)
    hook = create_webhook(world, httpserver, events=["memory.created"])
    for content in ("The first.", "The second.", "The third."):
        world.client("alice").post("memories/", {"content": content})
    drain()
    superuser().execute("UPDATE governance_webhookdelivery SET due_since = now() - interval '24 hours'")
    world.client("alice").post("memories/", {"content": "The fourth."})
    drain()
    due_now(superuser)
    drain()
    statuses = [delivery.status for delivery in deliveries(world, hook)]
    assert sorted(statuses) == [DeliveryStatus.FAILED] * 3 + [DeliveryStatus.PENDING]
    assert len(httpserver.log) == 2
    httpserver.clear()
    httpserver.expect_request("/hook").respond_with_data("")
    due_now(superuser)
    drain()
    assert deliveries(world, hook)[0].status == DeliveryStatus.DELIVERED


@pytest.mark.parametrize("change", [{"enabled": False}, None], ids=["switched off", "removed"])
def test_deliveries_that_wait_fail_once_the_webhook_is_switched_off_or_removed(
    world: World, httpserver: HTTPServer, inside: None, change: dict[str, Any] | None
) -> None:
    httpserver.expect_request("/hook").respond_with_data("", 500)
    hook = create_webhook(world, httpserver, events=["memory.created"])
    for content in ("The first.", "The second."):
        world.client("alice").post("memories/", {"content": content})
    drain()
    if change is None:
        webhook_remove(actor=world.olivia.actor, webhook_id=hook.webhook.id)
    else:
        webhook_update(actor=world.olivia.actor, webhook_id=hook.webhook.id, changes=change)
    drain()
    with acting(world.olivia.actor):
        assert not WebhookDelivery.objects.filter(status=DeliveryStatus.PENDING).exists()


def test_rotated_secret_signs_beside_the_previous_one_for_24_hours(
    world: World, httpserver: HTTPServer, inside: None, superuser: Superuser
) -> None:
    httpserver.expect_request("/hook").respond_with_data("")
    hook = create_webhook(world, httpserver)
    rotated = webhook_rotate(actor=world.olivia.actor, webhook_id=hook.webhook.id)
    assert rotated.secret != hook.secret
    assert webhook_test(actor=world.olivia.actor, webhook_id=hook.webhook.id) == ""
    (both, _) = httpserver.log[0]
    assert is_signed_with(both, hook.secret)
    assert is_signed_with(both, rotated.secret)
    superuser().execute("UPDATE governance_webhook SET previous_until = now()")
    assert webhook_test(actor=world.olivia.actor, webhook_id=hook.webhook.id) == ""
    (request, _) = httpserver.log[1]
    assert is_signed_with(request, rotated.secret)
    assert not is_signed_with(request, hook.secret)
    assert json.loads(request.get_data())["type"] == TEST_EVENT


def test_event_without_objects_is_delivered_unless_a_filter_asks_for_some(
    world: World, httpserver: HTTPServer, inside: None
) -> None:
    httpserver.expect_request("/hook").respond_with_data("")
    create_webhook(world, httpserver, events=["memory.deleted"])
    create_webhook(world, httpserver, events=["memory.deleted"], filters={"namespace": "/birds"})
    actor = world.olivia.actor
    with acting(actor):
        record(actor=actor, verb=Verb.MEMORY_DELETED, object_type="memory", object_ids=[])
    drain()
    assert [body["data"]["ids"] for body in bodies(httpserver)] == [[]]


@pytest.mark.parametrize("ended", ["removed", "switched off"])
def test_webhook_that_was_removed_or_switched_off_receives_nothing(
    world: World, httpserver: HTTPServer, inside: None, ended: str
) -> None:
    hook, actor = create_webhook(world, httpserver), world.olivia.actor
    world.client("alice").post("memories/", {"content": "It hails."})
    if ended == "removed":
        webhook_remove(actor=actor, webhook_id=hook.webhook.id)
        with acting(actor):
            assert Webhook.objects.get(id=hook.webhook.id).sealed_secret is None
    else:
        webhook_update(actor=actor, webhook_id=hook.webhook.id, changes={"enabled": False})
    world.client("alice").post("memories/", {"content": "It hails again."})
    drain()
    assert not httpserver.log
    with acting(actor):
        waited = WebhookDelivery.objects.filter(webhook_id=hook.webhook.id).values_list("status", flat=True)
        assert set(waited) <= {DeliveryStatus.FAILED}


def test_private_address_is_refused_when_it_is_saved_and_when_it_is_called(
    world: World, httpserver: HTTPServer
) -> None:
    for url in ("https://10.0.0.1/", "https://[::1]/", "http://hooks.example/", "https://u:p@hooks.example/", "hooks"):
        with pytest.raises(Invalid):
            webhook_create(actor=world.olivia.actor, draft=WebhookDraft(url, ["memory.*"]))
    hook = webhook_create(actor=world.olivia.actor, draft=WebhookDraft("https://localhost/", ["memory.*"]))
    assert webhook_test(actor=world.olivia.actor, webhook_id=hook.webhook.id) == UNREACHED


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_member_who_does_not_manage_operations_is_refused(world: World, who: str) -> None:
    actor = getattr(world, who).actor
    with pytest.raises(Forbidden):
        webhook_create(actor=actor, draft=WebhookDraft("https://hooks.example/", ["memory.*"]))
    with pytest.raises(Forbidden):
        webhooks_list(actor=actor, pages=First(1))


def test_webhook_of_another_tenant_is_not_there_and_hears_nothing(
    world: World, httpserver: HTTPServer, inside: None
) -> None:
    hook = create_webhook(world, httpserver)
    world.client("charlie").post("memories/", {"content": "Of another tenant."})
    drain()
    assert deliveries(world, hook) == []
    charlie = contract(world, "charlie")
    for method, address in (
        ("GET", f"webhooks/{hook.webhook.id}/"),
        ("PATCH", f"webhooks/{hook.webhook.id}/"),
        ("DELETE", f"webhooks/{hook.webhook.id}/"),
        ("POST", f"webhooks/{hook.webhook.id}/test/"),
        ("POST", f"webhooks/{hook.webhook.id}/rotate/"),
        ("GET", f"webhooks/{hook.webhook.id}/deliveries/"),
    ):
        assert charlie.send(method, address, {} if method == "PATCH" else None).status == 404
    with pytest.raises(NotFound):
        webhook_remove(actor=world.charlie.actor, webhook_id=hook.webhook.id)


def test_webhook_is_managed_over_rest(world: World, httpserver: HTTPServer, inside: None) -> None:
    httpserver.expect_request("/hook").respond_with_data("")
    olivia = contract(world, "olivia")
    body = {"url": httpserver.url_for("/hook"), "events": ["memory.*", "job.finished"]}
    created = olivia.post("webhooks/", body)
    assert created.status == 201
    assert created.json["secret"].startswith(PREFIX)
    address = f"webhooks/{created.json['id']}/"
    assert "secret" not in olivia.get(address).json
    assert set(created.json["events"]) == set(expand_events(["memory.*", "job.finished"]))
    assert olivia.post(f"{address}test/").json == {"delivered": True, "error": None}
    olivia.post("memories/", {"content": "The moon is full."})
    drain()
    sent = olivia.get(f"{address}deliveries/").json["results"]
    assert [delivery["status"] for delivery in sent] == ["delivered"] * len(sent) != []
    replayed = olivia.post(f"deliveries/{sent[0]['id']}/replay/")
    assert (replayed.status, replayed.json["status"]) == (200, "pending")
    assert olivia.patch(address, {"enabled": False}).json["enabled"] is False
    assert olivia.post(f"{address}rotate/").json["secret"] != created.json["secret"]
    assert olivia.delete(address).status == 204
    assert olivia.get(address).status == 404


@each_case(
    ("body", "field"),
    [
        ({"url": "https://10.1.1.1/", "events": ["memory.*"]}, "url"),
        ({"url": "hooks.example", "events": ["memory.*"]}, "url"),
        ({"url": "https://hooks.example/", "events": []}, "events"),
        ({"url": "https://hooks.example/", "events": ["memory.read"]}, "events.0"),
        ({"url": "https://hooks.example/", "events": ["memory.*"], "filters": {"colour": "red"}}, "filters.colour"),
        ({"url": "https://hooks.example/", "events": ["memory.*"], "filters": {"namespace": "x"}}, "filters.namespace"),
    ],
)
def test_bad_webhook_names_the_field_at_fault(world: World, body: dict[str, Any], field: str) -> None:
    refused = contract(world, "olivia").post("webhooks/", body)
    assert refused.status == 400
    assert fields_at_fault(refused) == {field}


def test_tenant_has_a_bounded_number_of_webhooks(world: World) -> None:
    draft = WebhookDraft("https://hooks.example/", ["memory.created"])
    for _ in range(MOST_WEBHOOKS):
        webhook_create(actor=world.olivia.actor, draft=draft)
    with pytest.raises(Conflict):
        webhook_create(actor=world.olivia.actor, draft=draft)


def test_events_are_changes_and_no_reads() -> None:
    names = event_names()
    assert {"memory.created", "memory.deleted", "job.finished", "review.accepted"} <= set(names)
    assert not {"memory.read", "memory.searched", "audit.listed", "access.denied"} & set(names)


def test_pauses_double_up_to_an_hour() -> None:
    assert [pause_after(n).total_seconds() for n in (1, 2, 3, 10, 500)] == [5, 10, 20, 2560, 3600]


def test_signature_equals_the_published_example() -> None:
    """The example of the Standard Webhooks specification 1.0, section "Signature scheme"."""
    headers = sign_headers(
        event_id="msg_p5jXN8AQM9LWM0D4loKWxJek",  # type: ignore[arg-type]
        moment=1614265330,
        body=b'{"test": 2432232314}',
        keys=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_deliveries_older_than_thirty_days_are_deleted(
    world: World, httpserver: HTTPServer, inside: None, superuser: Superuser
) -> None:
    httpserver.expect_request("/hook").respond_with_data("")
    hook = create_webhook(world, httpserver, events=["memory.created"])
    world.client("alice").post("memories/", {"content": "Long ago."})
    drain()
    superuser().execute("UPDATE governance_webhookdelivery SET created_at = %s", [timezone.now() - timedelta(days=31)])
    world.client("alice").post("memories/", {"content": "Today."})
    drain()
    assert len(deliveries(world, hook)) == 1
