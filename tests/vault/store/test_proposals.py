"""Proposed changes of a pack: sent by a subscriber, decided by the publisher, part of the next version."""

from typing import Any

import pytest

from governance.database import acting
from governance.models import AuditEntry, OutboxEvent
from governance.vocabulary import Topic, Verb
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, pack_of, publish_version, subscribe
from vault.models import PackProposal

CHANGED = "The heron nests by the old mill, above the weir."
REASON = "The mill by the road has no nests."
PLACE = "/packs/other/herons"


class Offered:
    """A pack of charlie that olivia has installed."""

    def __init__(self, olivia: Contract, charlie: Contract) -> None:
        self.pack = pack_of(charlie)
        self.memories = memories_of(charlie, *TEXTS)
        made = publish_version(charlie, build_version(charlie, self.pack, self.memories))
        self.subscription = f"subscriptions/{subscribe(olivia, made['id'])['id']}/"
        found = olivia.search("heron nests", namespaces=[PLACE])
        self.installed = next(memory["id"] for memory in found if memory["content"] == TEXTS[0])

    def body(self, **fields: Any) -> dict[str, Any]:
        return {"memory": self.installed, "content": CHANGED, "reason": REASON, **fields}

    def propose(self, client: Contract) -> str:
        """The id of the proposal that the publisher has received."""
        reply = client.post(f"{self.subscription}proposals/", self.body())
        assert (reply.status, reply.json["state"], reply.json["side"]) == (201, "open", "sent"), reply
        run_jobs()
        return str(reply.json["id"])


@pytest.fixture
def offer(olivia: Contract, charlie: Contract) -> Offered:
    return Offered(olivia, charlie)


def get_received(client: Contract) -> dict[str, Any]:
    (found,) = client.get("proposals/").json["results"]
    return dict(found)


def get_sent(client: Contract) -> dict[str, Any]:
    (found,) = client.get("proposals/?side=sent").json["results"]
    return dict(found)


def test_accepted_proposal_is_in_the_next_version_and_is_answered(
    world: World, olivia: Contract, charlie: Contract, offer: Offered
) -> None:
    offer.propose(olivia)
    asked = get_received(charlie)
    assert (asked["before"], asked["content"], asked["reason"]) == (TEXTS[0], CHANGED, REASON)
    assert (asked["organisation"], asked["pack"], asked["version"]) == ("Acme", "other/herons", "1.0.0")
    assert charlie.post(f"proposals/{asked['id']}/accept/", {}).json["state"] == "accepted"
    run_jobs()
    assert (get_sent(olivia)["state"], get_sent(olivia)["decided_at"] is not None) == ("accepted", True)

    newer = build_version(charlie, offer.pack, offer.memories, "1.1.0")
    assert (newer["state"], newer["report"]["reworded"]) == ("ready", 1)
    publish_version(charlie, newer)
    assert olivia.post(f"{offer.subscription}upgrade/", {"version": "1.1.0"}).status == 202
    run_jobs()
    assert CHANGED in olivia.search_contents("heron nests", namespaces=[PLACE])
    assert charlie.get(f"memories/{offer.memories[0]}/").json["content"] == TEXTS[0]
    for person in (world.olivia, world.charlie):
        with acting(person.actor):
            assert AuditEntry.objects.filter(verb=Verb.PROPOSAL_ACCEPTED).count() == 1


def test_memory_that_the_publisher_has_changed_since_keeps_its_own_wording(
    olivia: Contract, charlie: Contract, offer: Offered
) -> None:
    offer.propose(olivia)
    assert charlie.post(f"proposals/{get_received(charlie)['id']}/accept/", {}).status == 200
    own = "The heron nests at the lake."
    memory = charlie.get(f"memories/{offer.memories[0]}/")
    changed = charlie.patch(f"memories/{offer.memories[0]}/", {"content": own}, if_match=f'"{memory.json["version"]}"')
    assert changed.status == 200
    newer = build_version(charlie, offer.pack, offer.memories[:1], "1.1.0")
    assert newer["report"]["reworded"] == 0
    preview = charlie.get(f"packs/{offer.pack}/versions/1.1.0/preview/").json
    assert [memory["content"] for memory in preview["results"]] == [own]


def test_declined_proposal_tells_its_subscriber_why_and_changes_nothing(
    olivia: Contract, charlie: Contract, offer: Offered
) -> None:
    offer.propose(olivia)
    asked = get_received(charlie)["id"]
    assert charlie.post(f"proposals/{asked}/decline/", {}).status == 400
    assert charlie.post(f"proposals/{asked}/decline/", {"reason": "We saw them there."}).status == 200
    run_jobs()
    assert (get_sent(olivia)["state"], get_sent(olivia)["answer"]) == ("declined", "We saw them there.")
    assert charlie.post(f"proposals/{asked}/accept/", {}).status == 409
    assert build_version(charlie, offer.pack, offer.memories, "1.1.0")["report"]["reworded"] == 0
    assert olivia.post(f"{offer.subscription}proposals/", offer.body()).status == 201  # it may be proposed again


def test_proposal_that_was_delivered_twice_is_received_once(
    world: World, olivia: Contract, charlie: Contract, offer: Offered
) -> None:
    offer.propose(olivia)
    with acting(world.olivia.actor):
        OutboxEvent.objects.filter(topic=Topic.STORE_PROPOSED).update(done_at=None)
    run_jobs()
    assert get_received(charlie)["state"] == "open"


@each_case(
    "fields",
    [
        {"content": "Ask ana@birds.example about the heron."},
        {"reason": "The key is AKIAIOSFODNN7EXAMPLE."},
        {"content": " "},
        {"reason": ""},
        {"content": "x" * 32_001},
    ],
)
def test_proposal_with_personal_data_or_without_text_is_400_and_leaves_no_row(
    fields: dict[str, str], world: World, olivia: Contract, offer: Offered
) -> None:
    assert olivia.post(f"{offer.subscription}proposals/", offer.body(**fields)).status in {400, 413}
    with acting(world.olivia.actor):
        assert not PackProposal.objects.exists()


def test_second_proposal_for_a_memory_waits_for_the_first(olivia: Contract, offer: Offered) -> None:
    offer.propose(olivia)
    assert olivia.post(f"{offer.subscription}proposals/", offer.body()).status == 409


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("charlie", 404)])
def test_proposal_of_anybody_else_is_refused_and_leaves_no_row(
    who: str, status: int, world: World, offer: Offered
) -> None:
    assert contract(world, who).post(f"{offer.subscription}proposals/", offer.body()).status == status
    run_jobs()
    for person in (world.olivia, world.charlie):
        with acting(person.actor):
            assert not PackProposal.objects.exists()


def test_proposal_is_decided_only_by_its_publisher(
    world: World, olivia: Contract, charlie: Contract, offer: Offered
) -> None:
    mine = offer.propose(olivia)
    asked = get_received(charlie)["id"]
    for who, status in (("alice", 404), ("bob", 404), ("olivia", 404)):
        for verb in ("accept", "decline"):
            body = {"reason": "no"} if verb == "decline" else {}
            assert contract(world, who).post(f"proposals/{asked}/{verb}/", body).status == status
    assert olivia.post(f"proposals/{mine}/accept/", {}).status == 404  # of one that was sent
    assert contract(world, "bob").get("proposals/").status == 403
    assert get_received(charlie)["state"] == "open"


def test_proposal_for_a_memory_of_no_pack_is_404(olivia: Contract, offer: Offered) -> None:
    own = olivia.add("The heron is mine.")["id"]
    assert olivia.post(f"{offer.subscription}proposals/", offer.body(memory=own)).status == 404


def test_text_of_a_proposal_is_sealed_on_both_sides(world: World, olivia: Contract, offer: Offered) -> None:
    offer.propose(olivia)
    for person in (world.olivia, world.charlie):
        with acting(person.actor):
            (row,) = PackProposal.objects.all()
            assert CHANGED.encode() not in bytes(row.sealed)
