"""Pages of a pack as a source of knowledge: proposals, the inbox, marked sentences and traces."""

import re

import pytest
from django.test import Client

from governance.database import acting
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import TEXTS, build_version, offer_pack, pack_of, subscribe
from vault.models import PackProposal

CHANGED = "The heron nests by the old mill."


@pytest.fixture
def proposal_form(olivia: Contract, charlie: Contract) -> tuple[str, str]:
    """The address of a form that proposes a change of charlie's pack, and the installed memory."""
    mine = subscribe(olivia, offer_pack(charlie, TEXTS[0]))
    memory = olivia.search("heron", namespaces=["/packs/other/herons"])[0]["id"]
    return f"/store/subscriptions/{mine['id']}/propose/{memory}/", memory


def page(browser: Client, address: str) -> str:
    reply = browser.get(address)
    assert reply.status_code == 200, address
    return reply.content.decode()


def test_proposal_is_sent_by_a_form_decided_in_the_inbox_and_answered(
    world: World, proposal_form: tuple[str, str]
) -> None:
    subscriber, publisher = signed_in(world.olivia), signed_in(world.charlie)
    assert TEXTS[0] in page(subscriber, proposal_form[0])
    faulty = subscriber.post(proposal_form[0], {"content": "Ask ana@birds.example.", "reason": "x"})
    assert (faulty.status_code, "personal data" in faulty.content.decode()) == (422, True)
    assert subscriber.post(proposal_form[0], {"content": CHANGED, "reason": "It is old."}).status_code == 303
    run_jobs()
    inbox = page(publisher, "/reviews/")
    assert all(text in inbox for text in (CHANGED, TEXTS[0], "It is old.", "Acme proposes a change"))
    decide = re.search(r'action="(/store/proposals/[^"]+/decide/)"', inbox)
    assert decide is not None
    refused = publisher.post(decide[1], {"decline": "yes", "reason": "x" * 501})
    assert (refused.status_code, f'value="{"x" * 501}"' in refused.content.decode()) == (422, True)
    assert re.search(r'role="alert" id="[^"]+_reason_error"', refused.content.decode())
    assert publisher.post(decide[1], {"decline": "yes", "reason": "It is new."}).status_code == 303
    run_jobs()
    assert CHANGED not in page(publisher, "/reviews/")
    for address in ("/reviews/", "/store/proposals/"):
        assert "It is new." in page(subscriber, address)
    assert "It is new." in page(publisher, "/store/proposals/")


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_proposals_are_refused_without_the_right_to_manage_packs(
    who: str, world: World, proposal_form: tuple[str, str]
) -> None:
    assert signed_in(world.olivia).post(proposal_form[0], {"content": CHANGED, "reason": "x"}).status_code == 303
    run_jobs()
    browser = signed_in(world.person(who))
    assert browser.get("/store/proposals/").status_code == 403
    assert browser.post(proposal_form[0], {"content": CHANGED, "reason": "x"}).status_code == 403
    with acting(world.charlie.actor):
        row = PackProposal.objects.get()
    assert browser.post(f"/store/proposals/{row.id}/decide/").status_code in {403, 404}
    assert CHANGED not in page(browser, "/reviews/")


def test_sentence_is_worded_twice_and_a_leaked_text_is_traced(world: World, olivia: Contract) -> None:
    browser = signed_in(world.olivia)
    memory = olivia.add("The heron is grey. It returns in March. It eats fish.", namespace="/birds")["id"]
    address = f"/store/wordings/{memory}/"
    assert "It returns in March." in page(browser, address)
    same = browser.post(address, {"sentence": "It returns in March.", "second": "it returns in march"})
    assert same.status_code == 422
    second = {"sentence": "It returns in March.", "second": "In March it is back."}
    assert browser.post(address, second).status_code == 303
    assert "In March it is back." in page(browser, address)
    pack = pack_of(olivia)
    assert build_version(olivia, pack, [memory])["report"]["marked"] == 1
    trace = f"/store/own/{pack}/trace/"
    assert "<textarea" in page(browser, trace)
    found = browser.post(trace, {"text": "Yes, IN MARCH it is back!"}).content.decode()
    assert "1 of 1 marked sentence found" in found
    assert browser.post(address, {"remove": "yes"}).status_code == 303
    assert olivia.get(f"memories/{memory}/").json["metadata"] == {}
    assert signed_in(world.bob).post(address, second).status_code == 403
    assert signed_in(world.charlie).get(trace).status_code == 404
