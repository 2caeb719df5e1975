"""`manage.py demo` fills a tenant once, and every page of the product has something to show."""

import io
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from governance.actor import Actor
from governance.database import acting, database_now
from governance.models import AuditEntry, Job
from governance.tenants.selectors import tenant_id_by_slug
from governance.tenants.services import command_line_actor, sign_in_link_use, tenant_create
from governance.vocabulary import JobStatus
from tests.harness.databases import Clone
from vault.models import Conversation, Cube, CubeVersion, Hold, Review
from vault.vocabulary import ReviewStatus, State


def demo(*words: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("demo", *words, "--json", stdout=out)
    reply: dict[str, Any] = json.loads(out.getvalue())
    return reply


def system() -> Actor:
    tenant_id = tenant_id_by_slug("demo")
    assert tenant_id is not None
    return command_line_actor(tenant_id)


def signed_in(link: str) -> Client:
    client = Client()
    client.post(f"/sign-in/{link.rsplit('/', 2)[1]}/")
    return client


@pytest.mark.full
def test_demo_fills_a_month_once_and_its_pages_open(database: Clone) -> None:
    began = database_now()
    reply = demo()
    assert (reply["new"], len(reply["people"])) == (True, 6)
    assert reply["memories"] >= 150
    actor = system()
    with acting(actor):
        _assert_month(actor, began)
        before = (Cube.objects.count(), CubeVersion.objects.count(), AuditEntry.objects.count())
    again = demo()
    assert (again["new"], again["memories"]) == (False, reply["memories"])
    with acting(actor):
        assert (Cube.objects.count(), CubeVersion.objects.count()) == before[:2]
        assert AuditEntry.objects.count() == before[2] + len(reply["people"])  # the new links, nothing else
    _assert_pages_show(signed_in(again["people"][0]["sign_in_link"]))


def _assert_month(actor: Actor, began: datetime) -> None:
    now = database_now()
    cubes = Cube.objects.filter(tenant_id=actor.tenant_id)
    days = {(now - at).days for at in cubes.values_list("created_at", flat=True)}
    assert len(days) >= 25
    assert max(days) <= 30
    assert set(cubes.values_list("language", flat=True)) >= {"en", "zh"}
    assert cubes.exclude(deleted_at=None).count() == 2
    assert cubes.filter(expires_at__gt=now, expires_at__lt=now + timedelta(days=30)).count() >= 10
    assert cubes.filter(version__gte=3).count() >= 2
    assert not CubeVersion.objects.filter(created_at__gt=began).exists()  # every step is dated before the run
    assert Hold.objects.count() == 4
    assert set(cubes.values_list("state", flat=True)) == {State.GENERATED, State.ACTIVATED, State.ARCHIVED}
    assert Conversation.objects.count() == 6
    assert Review.objects.filter(status=ReviewStatus.OPEN).exists()
    assert set(Job.objects.values_list("status", "dead_letter")) >= {
        (JobStatus.PENDING, False),
        (JobStatus.FAILED, True),
    }


def _assert_pages_show(client: Client) -> None:
    for address, text in (
        ("/memories/", "Wheel 2 is quiet again."),
        ("/memories/?deleted=true", "one load"),
        ("/reviews/", "lighthouse-kitchen.example"),
        ("/personas/", "Kiln watcher"),
        ("/policies/", "Kiln log for three years"),
        ("/holds/", "Boat cover claim"),
        ("/settings/keys/", "Kiln logger"),
        ("/settings/members/", "tomas@saltmarsh.example"),
    ):
        page = client.get(address)
        assert (address, page.status_code, text in page.text) == (address, 200, True)


def test_another_tenant_of_that_name_is_refused(database: Clone) -> None:
    tenant, _ = tenant_create(slug="demo", name="Somebody", owner_email="owner@somebody.example")
    with pytest.raises(CommandError, match="is not the demo"):
        demo()
    with acting(command_line_actor(tenant.id)):
        assert not Cube.objects.exists()


def test_link_of_the_demo_signs_its_owner_in(database: Clone) -> None:
    link = demo("--tenant", "workshop")["people"][0]["sign_in_link"]
    actor = sign_in_link_use(token=link.rsplit("/", 2)[1], request_id="request-of-a-test", address="")
    assert actor.tenant_id == tenant_id_by_slug("workshop")
