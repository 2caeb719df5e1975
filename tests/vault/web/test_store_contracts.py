"""A publisher in a browser: who subscribes and reads how much, the invoice, the end of a contract."""

import pytest
from django.test import Client

from governance.database import acting
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import TEXTS, offer_pack, subscribe
from vault.models import Contract as ContractRow

PLACE = "/packs/other/herons"


@pytest.fixture
def contract_address(olivia: Contract, charlie: Contract) -> str:
    """The page of charlie's contract with acme, which has read the pack twice."""
    subscribe(olivia, offer_pack(charlie, *TEXTS, reads=5, price="4 pounds"))
    for _number in range(2):
        assert olivia.search("heron", namespaces=[PLACE])
    run_jobs()
    (contract,) = charlie.get("contracts/").json["results"]
    return f"/store/contracts/{contract['id']}/"


@pytest.fixture
def publisher(world: World) -> Client:
    return signed_in(world.charlie)


def text_of(browser: Client, address: str) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200, answer.content.decode()
    return str(answer.content.decode())


def test_publisher_sees_subscribers_and_their_reads(publisher: Client, contract_address: str) -> None:
    page = text_of(publisher, "/store/contracts/")
    for words in ("Acme", "other/herons", "2 of 5", "4 pounds", "Active", contract_address):
        assert words in page
    page = text_of(publisher, contract_address)
    for words in ("2 of 5", "Revoke the contract", '<td class="num">2</td>', "4 pounds"):
        assert words in page
    assert TEXTS[0] not in page


def test_invoice_is_downloaded_as_a_file(publisher: Client, contract_address: str) -> None:
    answer = publisher.get(f"{contract_address}invoice/")
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer["Content-Disposition"].startswith('attachment; filename="invoice-')
    assert "- Reads: 2" in answer.content.decode()
    assert "- Reads: 0" in publisher.get(f"{contract_address}invoice/?month=2001-01").content.decode()
    assert publisher.get(f"{contract_address}invoice/?month=May").status_code == 422


def test_contract_is_revoked_for_a_reason_that_the_subscriber_reads(
    world: World, olivia: Contract, publisher: Client, contract_address: str
) -> None:
    for reason, error in ((" ", "the subscriber reads the reason"), ("x" * 5_000, "x" * 5_000)):
        answer = publisher.post(f"{contract_address}revoke/", {"reason": reason})
        assert (answer.status_code, error in answer.content.decode()) == (422, True)
    assert olivia.search("heron", namespaces=[PLACE])
    assert publisher.post(f"{contract_address}revoke/", {"reason": "Not paid."}).status_code == 303
    run_jobs()
    assert "Revoke the contract" not in text_of(publisher, contract_address)
    mine = olivia.get("subscriptions/").json["results"][0]["id"]
    page = text_of(signed_in(world.olivia), f"/store/subscriptions/{mine}/")
    assert "Not paid." in page
    assert "Revoked by the publisher" in page
    assert olivia.search("heron", namespaces=[PLACE]) == []


@pytest.mark.parametrize(("who", "status"), [("alice", 404), ("bob", 404), ("olivia", 404)])
def test_contract_is_not_there_for_its_subscriber(world: World, contract_address: str, who: str, status: int) -> None:
    browser = signed_in(world.person(who))
    for there in (contract_address, f"{contract_address}invoice/"):
        assert browser.get(there).status_code == status
    assert browser.post(f"{contract_address}revoke/", {"reason": "Mine."}).status_code == status
    with acting(world.charlie.actor):
        assert ContractRow.objects.get().state == "active"


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_member_without_permission_sees_no_contracts(world: World, who: str) -> None:
    assert signed_in(world.person(who)).get("/store/contracts/").status_code == 403


def test_publisher_without_subscribers_sees_that_nobody_has_subscribed(world: World) -> None:
    assert "Nobody has subscribed yet" in text_of(signed_in(world.olivia), "/store/contracts/")
