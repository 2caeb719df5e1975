"""A trusted pack beside own memories: proposals in the inbox, which end validities, raise trust, or are remembered."""

from typing import Any

import pytest

from governance.database import acting
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import build_version, memories_of, pack_of, publish_version, subscribe
from vault.lifecycle.knowledge import find_relation
from vault.models import Cube
from vault.vocabulary import ReviewKind

DOSE, LESS = "Adults take 400 mg of ibuprofen every eight hours.", "Adults take 200 mg of ibuprofen every eight hours."
REST = "Rest the sprained ankle, and cool it with ice."
OTHER = "The pharmacy opens at nine."


@pytest.fixture
def guideline(charlie: Contract) -> dict[str, Any]:
    """A publication of other, and its pack, whose first edition states a dose and a rest."""
    pack = pack_of(charlie, "guideline")
    ids = memories_of(charlie, DOSE, REST)
    made = publish_version(charlie, build_version(charlie, pack, ids))
    return {"pack": pack, "publication": made["id"], "rest": ids[1]}


def next_edition(charlie: Contract, guideline: dict[str, Any], text: str, **fields: Any) -> None:
    ids = [*memories_of(charlie, text, **fields), guideline["rest"]]
    publish_version(charlie, build_version(charlie, guideline["pack"], ids, "2.0.0"))
    run_jobs()


def subscribe_with_trust(client: Contract, guideline: dict[str, Any], **fields: Any) -> str:
    made = subscribe(client, guideline["publication"], **fields)
    assert client.patch(f"subscriptions/{made['id']}/", {"trusted": True}).json["trusted"] is True
    run_jobs()
    found: str = made["id"]
    return found


def proposals(client: Contract) -> list[tuple[str, str, str]]:
    """(kind, own text, the pack's text) of open reviews about packs."""
    rows = client.get("reviews/").json["results"]
    return sorted(
        (row["kind"], row["content"], row["official"]["content"]) for row in rows if row["kind"].startswith("pack_")
    )


def review_of(client: Contract, kind: str) -> str:
    (found,) = client.get(f"reviews/?kind={kind}").json["results"]
    return str(found["id"])


def test_new_edition_supersedes_an_own_memory_and_accepting_ends_its_validity(
    alice: Contract, olivia: Contract, charlie: Contract, guideline: dict[str, Any]
) -> None:
    own = alice.add(DOSE)["id"]
    alice.add(OTHER)
    subscription = subscribe_with_trust(olivia, guideline)
    assert proposals(alice) == [("pack_confirms", DOSE, DOSE)]
    assert alice.post(f"reviews/{review_of(alice, 'pack_confirms')}/reject/", {}).status == 200

    next_edition(charlie, guideline, LESS)
    assert olivia.post(f"subscriptions/{subscription}/upgrade/", {"version": "2.0.0"}).status == 202
    run_jobs()
    assert proposals(alice) == [("pack_supersedes", DOSE, LESS)]
    accepted = alice.post(f"reviews/{review_of(alice, 'pack_supersedes')}/accept/", {})
    assert (accepted.status, accepted.json["status"]) == (200, "accepted")
    now = alice.get(f"memories/{own}/").json
    assert (now["version"], now["valid_to"] is not None) == (2, True)
    newer = alice.get(f"memories/{now['superseded_by']}/").json
    assert (newer["content"], newer["pack"], newer["trust"]) == (LESS, "other/guideline", 0.9)
    assert alice.search_contents("ibuprofen dose", namespaces=["/packs/other/guideline"])[0] == LESS


def test_older_statement_of_a_pack_contradicts_a_later_own_one(
    alice: Contract, olivia: Contract, charlie: Contract
) -> None:
    pack = pack_of(charlie, "guideline")
    ids = memories_of(charlie, DOSE, valid_from="2020-01-01T00:00:00Z")
    made = publish_version(charlie, build_version(charlie, pack, ids))
    own = alice.add(LESS)["id"]
    subscribe_with_trust(olivia, {"publication": made["id"]})
    assert proposals(alice) == [("pack_contradicts", LESS, DOSE)]
    assert alice.post(f"reviews/{review_of(alice, 'pack_contradicts')}/accept/", {}).status == 200
    assert alice.get(f"memories/{own}/").json["valid_to"] is not None


def test_rejected_proposal_is_remembered_and_both_statements_stay(
    alice: Contract, olivia: Contract, guideline: dict[str, Any]
) -> None:
    own = alice.add(LESS)["id"]
    subscription = subscribe_with_trust(olivia, guideline)
    assert alice.post(f"reviews/{review_of(alice, 'pack_contradicts')}/reject/", {}).status == 200
    reply = olivia.post(f"subscriptions/{subscription}/compare/", {})
    assert reply.status == 202
    run_jobs()
    assert olivia.get(f"jobs/{reply.json['job']['id']}/").json["status"] == "succeeded"
    assert proposals(alice) == []
    assert alice.get(f"memories/{own}/").json["valid_to"] is None


def test_accepted_confirmation_raises_the_trust_of_the_own_memory(
    alice: Contract, olivia: Contract, guideline: dict[str, Any]
) -> None:
    own = alice.add("Rest the sprained ankle and cool it with ice!")["id"]
    subscribe_with_trust(olivia, guideline)
    assert alice.get(f"memories/{own}/").json["trust"] == 0.5
    assert alice.post(f"reviews/{review_of(alice, 'pack_confirms')}/accept/", {}).status == 200
    now = alice.get(f"memories/{own}/").json
    assert (now["trust"], now["version"], now["valid_to"]) == (0.9, 1, None)


def test_untrusted_pack_is_compared_only_on_demand(
    alice: Contract, olivia: Contract, guideline: dict[str, Any]
) -> None:
    alice.add(LESS)
    made = subscribe(olivia, guideline["publication"])
    assert (made["trusted"], proposals(alice)) == (False, [])
    assert olivia.post(f"subscriptions/{made['id']}/compare/", {}).status == 202
    run_jobs()
    assert proposals(alice) == [("pack_contradicts", LESS, DOSE)]


def test_task_ranks_official_or_personal_statements_first_and_both_are_labelled(
    alice: Contract, olivia: Contract, guideline: dict[str, Any]
) -> None:
    alice.add(LESS, namespace="/ward")
    subscribe_with_trust(olivia, guideline)
    asked: dict[str, Any] = {
        "query": "How much ibuprofen?",
        "namespaces": ["/ward", "/packs/other/guideline"],
        "top_k": 2,
    }
    for prefer, first in (("official", "other/guideline"), ("personal", None)):
        found = alice.search(**asked, prefer=prefer)
        assert {memory["content"] for memory in found} == {LESS, DOSE}
        assert found[0]["pack"] == first
        assert [row["trust"] for row in found] == ([0.9, 0.5] if first else [0.5, 0.9])
    assert alice.post("memories/search/", {**asked, "prefer": "nobody"}).status == 400
    (own,) = (memory for memory in alice.search(**asked) if memory["pack"] is None)
    ended = {"valid_from": "2020-01-01T00:00:00Z", "valid_to": "2021-01-01T00:00:00Z"}
    assert alice.patch(f"memories/{own['id']}/", ended, if_match='"1"').status == 200
    for prefer in ("official", "personal"):
        assert [memory["content"] for memory in alice.search(**asked, prefer=prefer)] == [DOSE, LESS]
    context = alice.post("memories/context/", {"query": asked["query"], "namespaces": asked["namespaces"]}).json
    packs = {alice.get(f"memories/{item['id']}/").json["content"]: item["pack"] for item in context["items"]}
    assert packs == {DOSE: "other/guideline", REST: "other/guideline", LESS: None}


def test_proposals_and_trust_go_with_the_subscription(
    world: World, alice: Contract, olivia: Contract, guideline: dict[str, Any]
) -> None:
    alice.add(LESS)
    subscription = subscribe_with_trust(olivia, guideline)
    assert olivia.delete(f"subscriptions/{subscription}/").status == 202
    run_jobs()
    assert proposals(alice) == []
    assert olivia.post(f"subscriptions/{subscription}/compare/", {}).status == 409
    with acting(world.olivia.actor):
        assert list(Cube.objects.filter(trust=0.9)) == []


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("charlie", 404)])
def test_comparison_by_anybody_else_is_refused_and_proposes_nothing(
    who: str, status: int, world: World, alice: Contract, olivia: Contract, guideline: dict[str, Any]
) -> None:
    alice.add(LESS)
    made = subscribe(olivia, guideline["publication"])
    client = contract(world, who)
    assert client.post(f"subscriptions/{made['id']}/compare/", {}).status == status
    assert client.patch(f"subscriptions/{made['id']}/", {"trusted": True}).status == status
    run_jobs()
    assert (proposals(alice), olivia.get(f"subscriptions/{made['id']}/").json["trusted"]) == ([], False)


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("charlie", 404)])
def test_proposal_is_decided_by_who_may_change_the_own_memory(
    who: str, status: int, world: World, alice: Contract, olivia: Contract, guideline: dict[str, Any]
) -> None:
    own = alice.add(LESS, namespace="/ward")["id"]
    subscribe_with_trust(olivia, guideline)
    review = review_of(olivia, "pack_contradicts")
    for verb in ("accept", "reject"):
        assert contract(world, who).post(f"reviews/{review}/{verb}/", {}).status == status
    assert alice.get(f"memories/{own}/").json["valid_to"] is None


def test_inbox_shows_both_statements_with_the_pack_and_decides(
    world: World, alice: Contract, olivia: Contract, guideline: dict[str, Any]
) -> None:
    own = alice.add(LESS)["id"]
    subscribe_with_trust(olivia, guideline)
    page = signed_in(world.alice).get("/reviews/").content.decode()
    for text in (LESS, DOSE, "other/guideline", "The pack is right"):
        assert text in page
    review = review_of(alice, "pack_contradicts")
    assert signed_in(world.alice).post(f"/reviews/{review}/accept/").status_code == 303
    assert alice.get(f"memories/{own}/").json["superseded_by"] is not None


@pytest.mark.parametrize(
    ("official", "own", "is_newer", "relation"),
    [
        (LESS, DOSE, True, ReviewKind.PACK_SUPERSEDES),
        (LESS, DOSE, False, ReviewKind.PACK_CONTRADICTS),
        ("Do not give honey to babies.", "Give honey to babies.", True, ReviewKind.PACK_SUPERSEDES),
        ("成人每八小时服用布洛芬200毫克。", "成人每八小时服用布洛芬400毫克。", True, ReviewKind.PACK_SUPERSEDES),
        ("成人每八小时服用布洛芬200毫克。", "成人每八小时服用布洛芬200毫克！", True, ReviewKind.PACK_CONFIRMS),
        (DOSE, DOSE, True, ReviewKind.PACK_CONFIRMS),
        (DOSE, REST, True, None),
        (DOSE, "Do adults take 200 mg of ibuprofen every eight hours?", True, None),
    ],
)
def test_relation_follows_from_numbers_negations_and_time(
    official: str, own: str, is_newer: bool, relation: ReviewKind | None
) -> None:
    assert find_relation(official, own, is_newer=is_newer) == relation
