"""Ratings: by subscribers, counted at the publisher through the outbox, read by everybody who finds the pack."""

import pytest
from django.test import Client

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import RoleName, Verb
from tests.factories import World, person_add
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import (
    TEXTS,
    build_version,
    memories_of,
    offer_pack,
    pack_of,
    publish_version,
    subscribe,
)
from vault.models import PackRating

RATED = {"stars": 4, "text": "Short, and to the point."}


@pytest.fixture
def publication(charlie: Contract) -> str:
    return offer_pack(charlie, *TEXTS)


def rate_pack(client: Contract, publication: str, **fields: object) -> dict[str, object]:
    reply = client.post(f"publications/{publication}/ratings/", {**RATED, **fields})
    assert reply.status == 201, reply
    run_jobs()
    found: dict[str, object] = reply.json
    return found


def test_rating_of_a_subscriber_is_counted_and_read_by_all(
    world: World, olivia: Contract, bob: Contract, charlie: Contract, publication: str
) -> None:
    subscribe(olivia, publication)
    assert rate_pack(olivia, publication)["version"] == "1.0.0"
    adam = Contract(key=person_add(world.acme, "adam@acme.example", RoleName.ADMIN).key.text)
    rate_pack(adam, publication, stars=1, text="")
    for reader in (bob, charlie):
        listed = reader.get(f"publications/{publication}/").json
        assert (listed["rating"], listed["ratings"]) == (2.5, 2)
        rows = reader.get(f"publications/{publication}/ratings/").json["results"]
        assert [(row["organisation"], row["stars"], row["text"]) for row in rows] == [
            ("Acme", 1, ""),
            ("Acme", 4, RATED["text"]),
        ]


def test_second_rating_of_a_member_replaces_the_first_and_a_removed_one_is_not_counted(
    olivia: Contract, charlie: Contract, publication: str
) -> None:
    subscribe(olivia, publication)
    rate_pack(olivia, publication)
    rate_pack(olivia, publication, stars=2)
    address = f"publications/{publication}/"
    assert (charlie.get(address).json["rating"], charlie.get(address).json["ratings"]) == (2.0, 1)
    assert olivia.delete(f"{address}ratings/").status == 204
    run_jobs()
    assert (charlie.get(address).json["rating"], charlie.get(address).json["ratings"]) == (None, 0)
    assert olivia.delete(f"{address}ratings/").status == 404


def test_ended_subscription_still_rates(olivia: Contract, charlie: Contract, publication: str) -> None:
    made = subscribe(olivia, publication)
    assert olivia.delete(f"subscriptions/{made['id']}/").status == 202
    run_jobs()
    rate_pack(olivia, publication)
    assert charlie.get(f"publications/{publication}/").json["ratings"] == 1


@each_case(("who", "status"), [("alice", 403), ("bob", 403), ("olivia", 409), ("charlie", 409)])
def test_rating_of_anybody_else_is_refused_and_leaves_no_row(
    who: str, status: int, world: World, charlie: Contract, publication: str
) -> None:
    if who == "charlie":
        subscribe(charlie, publication)  # of one's own organisation
    reply = contract(world, who).post(f"publications/{publication}/ratings/", RATED)
    assert reply.status == status, reply
    run_jobs()
    for person in (world.olivia, world.charlie):
        with acting(person.actor):
            assert not PackRating.objects.exists()


def test_rating_of_a_pack_that_is_not_found_is_404(olivia: Contract, charlie: Contract) -> None:
    made = publish_version(
        charlie, build_version(charlie, pack_of(charlie), memories_of(charlie, TEXTS[0])), visibility="tenant"
    )
    for method in ("get", "post"):
        reply = olivia.send(method.upper(), f"publications/{made['id']}/ratings/", RATED if method == "post" else None)
        assert reply.status == 404, method


@pytest.mark.parametrize(
    "fields", [{"stars": 0}, {"stars": 6}, {"stars": "five"}, {"text": "x" * 501}, {"stars": None}]
)
def test_rating_outside_of_its_bounds_is_400(olivia: Contract, publication: str, fields: dict[str, object]) -> None:
    subscribe(olivia, publication)
    assert olivia.post(f"publications/{publication}/ratings/", {**RATED, **fields}).status == 400


def test_catalogue_by_rating_has_the_best_mean_first_and_unrated_packs_last(
    world: World, olivia: Contract, charlie: Contract
) -> None:
    adam = Contract(key=person_add(world.acme, "adam@acme.example", RoleName.ADMIN).key.text)
    packs = {
        name: offer_pack(charlie, text, name=name)
        for name, text in zip(("unrated", "often", "best"), TEXTS, strict=True)
    }
    for name in ("often", "best"):
        subscribe(olivia, packs[name])
    rate_pack(olivia, packs["often"], stars=3)
    rate_pack(adam, packs["often"], stars=3)  # the larger sum
    rate_pack(olivia, packs["best"], stars=5)
    listed = olivia.get("publications/?order=rated").json["results"]
    assert [row["name"] for row in listed] == ["other/best", "other/often", "other/unrated"]


def test_both_audit_logs_have_the_rating(world: World, olivia: Contract, publication: str) -> None:
    subscribe(olivia, publication)
    rate_pack(olivia, publication)
    for person in (world.olivia, world.charlie):
        with acting(person.actor):
            (entry,) = AuditEntry.objects.filter(verb=Verb.PUBLICATION_RATED)
            assert [str(object_id) for object_id in entry.object_ids] == [publication]


def test_pack_page_shows_ratings_and_a_form_to_who_may_rate(world: World, olivia: Contract, publication: str) -> None:
    subscribe(olivia, publication)
    owner, address = signed_in(world.olivia), "/store/other/herons/"
    assert 'name="stars"' in _page(owner, address)
    refused = owner.post(f"{address}rate/", {"stars": "9", "text": "x"})
    assert (refused.status_code, 'name="stars"' in refused.content.decode()) == (422, True)
    assert owner.post(f"{address}rate/", {"stars": "4", "text": "Short <b>and</b> good."}).status_code == 303
    run_jobs()
    for person in (world.bob, world.charlie):
        page = _page(signed_in(person), address)
        assert "Short &lt;b&gt;and&lt;/b&gt; good." in page
        assert 'name="stars"' not in page
    assert "Change your rating" in _page(owner, address)
    assert owner.post(f"{address}rate/", {"remove": "yes"}).status_code == 303
    run_jobs()
    assert "Nobody has rated this pack." in _page(owner, address)
    assert signed_in(world.bob).post(f"{address}rate/", {"stars": "4"}).status_code == 403


def _page(browser: Client, address: str) -> str:
    reply = browser.get(address)
    assert reply.status_code == 200
    return reply.content.decode()
