"""Reports of packs: written by readers, read and decided by operators alone, of every organisation."""

import pytest
from django.test import Client

from governance.accounts.operators import operator_set
from governance.database import acting, no_tenant
from governance.errors import NotFound
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import TEXTS, offer_pack, subscribe
from vault.models import PackReport
from vault.store.moderation import Decision, report_decide, reports_list

PACK = "/store/other/herons/"
REPORT = {"reason": "wrong", "text": "Herons sleep on two legs."}
QUEUE = "/store/moderation/"


@pytest.fixture
def publication(charlie: Contract) -> str:
    return offer_pack(charlie, *TEXTS)


@pytest.fixture
def operator(world: World) -> Client:
    """A window of bob, who operates the installation and may neither publish nor subscribe."""
    operator_set(user_id=world.bob.member.user_id, is_operator=True)
    return signed_in(world.bob)


def report_pack(world: World, publication: str) -> str:
    """The address that decides on a report of olivia."""
    reply = contract(world, "olivia").post(f"publications/{publication}/reports/", REPORT)
    assert reply.status == 201, reply
    return f"{QUEUE}{world.olivia.actor.tenant_id}/{reply.json['id']}/"


@pytest.mark.usefixtures("publication")
def test_reader_reports_a_pack_in_a_browser_once(world: World, operator: Client) -> None:
    reader = signed_in(world.alice)
    assert f"{PACK}report/" in reader.get(PACK).content.decode()
    assert reader.post(f"{PACK}report/", {"reason": "boring"}).status_code == 422
    assert (
        "The operator of this installation has your report." in reader.post(f"{PACK}report/", REPORT).content.decode()
    )
    assert reader.post(f"{PACK}report/", REPORT).status_code == 422
    page = operator.get(QUEUE).content.decode()
    for words in ("other/herons", "Wrong statements", REPORT["text"], "Reported by Acme, published by Other"):
        assert words in page
    with acting(world.olivia.actor):
        (entry,) = AuditEntry.objects.filter(verb=Verb.PUBLICATION_REPORTED)
        assert entry.detail["reason"] == "wrong"


def test_publisher_does_not_see_the_report(world: World, publication: str) -> None:
    report_pack(world, publication)
    with acting(world.charlie.actor):
        assert not PackReport.objects.exists()
        assert not AuditEntry.objects.filter(verb=Verb.PUBLICATION_REPORTED).exists()


def test_operator_bans_the_pack_and_it_goes_from_subscribers(
    world: World, olivia: Contract, charlie: Contract, publication: str, operator: Client
) -> None:
    subscribe(olivia, publication)
    decide = report_pack(world, publication)
    link = 'href="/store/other/herons/"'
    assert link in operator.get(QUEUE).content.decode()
    refused = operator.post(decide, {"decision": "ban"})
    assert (refused.status_code, "_reason_error" in refused.content.decode()) == (422, True)
    assert operator.post(decide, {"decision": "keep", "reason": "x"}).status_code == 422
    assert operator.post(decide, {"decision": "ban", "reason": "Wrong."}).status_code == 303
    run_jobs()
    assert olivia.search("heron", namespaces=["/packs/other/herons"]) == []
    (own,) = charlie.get("publications/own/").json["results"]
    assert (own["state"], own["reason"]) == ("banned", "Wrong.")
    assert "other/herons" not in operator.get(QUEUE).content.decode()
    decided = operator.get(f"{QUEUE}?decided=yes").content.decode()
    assert "Banned by the operator" in decided
    assert "Show again" in decided
    assert link not in decided
    for person in (world.bob, world.charlie):
        with acting(person.actor):
            assert AuditEntry.objects.filter(verb=Verb.PUBLICATION_MODERATED).exists()
    assert operator.post(decide, {"decision": "show", "reason": "Mended."}).status_code == 303
    assert [publication["name"] for publication in olivia.get("publications/").json["results"]] == ["other/herons"]


def test_dismissed_report_leaves_the_pack(world: World, olivia: Contract, publication: str, operator: Client) -> None:
    assert operator.post(report_pack(world, publication), {"decision": "dismiss"}).status_code == 303
    assert "No report" in operator.get(QUEUE).content.decode()
    assert [publication["name"] for publication in olivia.get("publications/").json["results"]] == ["other/herons"]
    assert "Left as it was" in operator.get(f"{QUEUE}?decided=yes").content.decode()


@pytest.mark.parametrize("who", ["olivia", "alice", "bob", "charlie"])
def test_moderation_is_not_there_for_others(world: World, publication: str, who: str) -> None:
    decide = report_pack(world, publication)
    browser = signed_in(world.person(who))
    assert browser.get(QUEUE).status_code == 404
    assert browser.post(decide, {"decision": "hide", "reason": "x"}).status_code == 404
    assert QUEUE not in browser.get("/store/").content.decode()
    with acting(world.olivia.actor):
        assert PackReport.objects.get().decided_at is None


def test_operator_through_an_api_key_moderates_nothing(world: World, publication: str) -> None:
    operator_set(user_id=world.bob.member.user_id, is_operator=True)
    report_id = report_pack(world, publication).split("/")[-2]
    with pytest.raises(NotFound):
        reports_list(actor=world.bob.actor)
    with pytest.raises(NotFound):
        report_decide(
            actor=world.bob.actor,
            tenant_id=world.olivia.actor.tenant_id,
            report_id=report_id,  # type: ignore[arg-type]
            decision=Decision.HIDE,
            reason="x",
        )


def test_pack_that_is_not_found_is_not_reported(world: World, charlie: Contract) -> None:
    mine = charlie.post("packs/", {"name": "secret", "title": "Secret"}).json["id"]
    assert contract(world, "olivia").post(f"publications/{mine}/reports/", REPORT).status == 404
    with no_tenant():
        assert not PackReport.objects.exists()


def test_member_without_reading_reports_nothing(world: World, publication: str) -> None:
    assert contract(world, "ada").post(f"publications/{publication}/reports/", REPORT).status == 403
    with acting(world.olivia.actor):
        assert not PackReport.objects.exists()
