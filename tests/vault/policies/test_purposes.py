"""Purpose binding: what is bound is read for its purposes alone, by list, search, get, versions and chat."""

import random
from uuid import UUID

import pytest

from governance.database import acting
from governance.ids import uuid7
from governance.models import AuditEntry
from governance.policies.purposes import denied_rows, where_condition
from governance.policies.rules import Purposes, Rule, Where, is_denied, matches, purpose_levels
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract, without_id
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import change_policy, create_policy
from vault.cubes.retention import facts_of
from vault.models import Cube

CLINIC = {"where": {"namespace": "/clinic"}, "purposes": ["treatment", "billing"]}
THERAPY = {"where": {"namespace": "/clinic/therapy"}, "purposes": ["treatment"]}


def read_by_each_way(client: Contract, purpose: str) -> dict[str, list[str]]:
    """Return the results of each way of reading for this purpose."""
    headers = {"x_memory_purpose": purpose} if purpose else {}
    found = client.post("memories/search/", {"query": "notes", "top_k": 50}, **headers).json["results"]
    tagged = client.post("memories/search/", {"query": "note", "mode": "tag"}, **headers).json["results"]
    graph = client.post("memories/search/", {"query": "notes", "mode": "graph", "top_k": 50}, **headers).json["results"]
    return {
        "list": sorted(memory["content"] for memory in client.get("memories/", **headers).json["results"]),
        **{
            name: sorted(result["content"] for result in results)
            for name, results in (("search", found), ("tag", tagged), ("graph", graph))
        },
    }


@pytest.fixture
def notes(olivia: Contract, alice: Contract) -> dict[str, str]:
    ids = {
        path: alice.add(f"Notes in {path}.", namespace=path, tags=["note"])["id"]
        for path in ("/clinic", "/clinic/therapy", "/open")
    }
    run_jobs()
    create_policy(olivia, "purpose", CLINIC, name="clinic")
    create_policy(olivia, "purpose", THERAPY, name="therapy")
    return ids


@each_case(
    ("purpose", "paths"),
    [
        ("", ["/open"]),
        ("marketing", ["/open"]),
        ("billing", ["/clinic", "/open"]),
        ("treatment", ["/clinic", "/clinic/therapy", "/open"]),
    ],
)
@each_case("who", ["olivia", "alice", "bob"])
def test_every_way_of_reading_shows_just_what_the_purpose_opens(
    world: World, notes: dict[str, str], who: str, purpose: str, paths: list[str]
) -> None:
    client = contract(world, who)
    expected = [f"Notes in {path}." for path in paths]
    assert read_by_each_way(client, purpose) == dict.fromkeys(("list", "search", "tag", "graph"), expected)
    for path, memory_id in notes.items():
        for address in (f"memories/{memory_id}/", f"memories/{memory_id}/versions/"):
            status = client.get(address, x_memory_purpose=purpose).status
            assert status == (200 if path in paths else 403), (address, path)


def test_a_denial_names_the_policy(notes: dict[str, str], bob: Contract, world: World) -> None:
    address = f"memories/{notes['/clinic/therapy']}/"
    reply = bob.get(address, x_memory_purpose="billing")
    assert (reply.status, reply.json["code"]) == (403, "forbidden")
    assert reply.json["detail"] == (
        "The policy therapy does not allow this for the purpose billing. Name another in X-Memory-Purpose."
    )
    with acting(world.olivia.actor):
        row = AuditEntry.objects.filter(outcome="denied").latest("id")
    assert (row.detail["rule"], row.context["purpose"]) == ("policy:therapy@1", "billing")
    silent = bob.get(address).json["detail"]
    assert silent == "The policy therapy allows this only for certain purposes. Name one in X-Memory-Purpose."


def test_whoever_may_not_know_of_a_memory_hears_of_no_policy(
    notes: dict[str, str], olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    address = f"memories/{notes['/clinic/therapy']}/"
    search_results = charlie.get(address, x_memory_purpose="billing")
    never = charlie.get(f"memories/{uuid7()}/", x_memory_purpose="billing")
    assert search_results.status == 404
    assert without_id(search_results) == without_id(never)
    own = alice.add("Alice's own.")
    create_policy(
        olivia, "purpose", {"where": {"namespace": own["namespace"]["path"]}, "purposes": ["diary"]}, name="mine"
    )
    address = f"memories/{own['id']}/"
    assert "policy mine" in alice.get(address, x_memory_purpose="billing").json["detail"]
    assert "policy" not in bob.get(address, x_memory_purpose="billing").json["detail"]


def test_chat_finds_only_what_the_purpose_opens(notes: dict[str, str], alice: Contract) -> None:
    for purpose, opens in (("", {"/open"}), ("treatment", set(notes))):
        conversation = alice.post("conversations/", {}).json["id"]
        turn = alice.post(
            f"conversations/{conversation}/turns/", {"content": "Which notes?"}, x_memory_purpose=purpose
        ).json
        cited = {citation["memory_id"] for citation in turn["citations"]}
        assert cited <= {notes[path] for path in opens}
        assert cited


def test_nobody_changes_what_they_may_not_read(notes: dict[str, str], alice: Contract) -> None:
    address = f"memories/{notes['/clinic']}/"
    assert alice.patch(address, {"title": "x"}, if_match='"1"').status == 403
    assert alice.patch(address, {"title": "x"}, if_match='"1"', x_memory_purpose="billing").status == 200


def test_a_review_is_bound_by_what_its_version_was(olivia: Contract, alice: Contract, world: World) -> None:
    create_policy(olivia, "purpose", {"where": {"sensitivities": ["restricted"]}, "purposes": ["legal"]})
    memory = alice.add("Mail li.lei@example.cn.", namespace="/team", sensitivity="restricted")["id"]
    body = {"sensitivity": "public", "content": "Nothing."}
    opened = alice.patch(f"memories/{memory}/", body, if_match='"1"', x_memory_purpose="legal")
    assert opened.status == 200
    assert alice.get("reviews/").json["results"] == []
    assert "li.lei" not in signed_in(world.alice).get("/reviews/").content.decode()
    (review,) = alice.get("reviews/", x_memory_purpose="legal").json["results"]
    assert (review["version"], len(review["findings"])) == (1, 1)
    address = f"/reviews/{review['id']}/accept/"
    assert signed_in(world.alice).get(address).status_code == 404
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 404
    assert alice.post(f"reviews/{review['id']}/reject/").status == 404
    assert alice.post(f"reviews/{review['id']}/reject/", x_memory_purpose="legal").status == 200


def test_a_version_is_bound_by_what_it_was(olivia: Contract, alice: Contract) -> None:
    create_policy(olivia, "purpose", {"where": {"sensitivities": ["restricted"]}, "purposes": ["legal"]})
    memory = alice.add("Secret once.", namespace="/team", sensitivity="restricted")["id"]
    opened = alice.patch(f"memories/{memory}/", {"sensitivity": "public"}, if_match='"1"', x_memory_purpose="legal")
    assert opened.status == 200
    numbers = [row["version"] for row in alice.get(f"memories/{memory}/versions/").json["results"]]
    assert numbers == [2]
    bound = alice.get(f"memories/{memory}/versions/", x_memory_purpose="legal").json["results"]
    assert [version["version"] for version in bound] == [2, 1]


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense", "graph"])
def test_what_a_purpose_hides_leaves_no_trace_in_a_score(olivia: Contract, bob: Contract, mode: str) -> None:
    """Bound by more than its namespace: what a search counts is asked row by row."""
    create_policy(olivia, "purpose", {"where": {"sensitivities": ["restricted"]}, "purposes": ["audit"]})
    for number in range(4):
        olivia.add(f"The harbour project meets on day {number}.", namespace="/shared/p")
    run_jobs()
    asked = [f"harbour {word}" for word in ("falcon", "merger", "million", "eagle", "billion")]

    def search_results() -> list[list[tuple[str, float, dict[str, float]]]]:
        found = [bob.search(query, mode=mode, explain=True) for query in asked]
        return [[(hit["id"], hit["score"], hit["score_parts"]) for hit in hits] for hits in found]

    before = search_results()
    olivia.add("Falcon merger harbour: the price is 12 million.", namespace="/shared/p", sensitivity="restricted")
    run_jobs()
    assert search_results() == before
    assert bob.search("harbour falcon", mode=mode) != []
    shown = bob.post("memories/search/", {"query": "harbour falcon", "mode": mode}, x_memory_purpose="audit").json
    assert any("Falcon" in hit["content"] for hit in shown["results"])


def test_a_binding_of_everything_leaves_an_empty_answer(olivia: Contract, alice: Contract) -> None:
    alice.add("Notes.", namespace="/team", tags=["note"])
    run_jobs()
    policy = create_policy(olivia, "purpose", {"where": {}, "purposes": ["audit"]})
    assert set(map(tuple, read_by_each_way(alice, "").values())) == {()}
    assert set(map(tuple, read_by_each_way(alice, "audit").values())) == {("Notes.",)}
    change_policy(olivia, policy, enabled=False)
    assert set(map(tuple, read_by_each_way(alice, "").values())) == {("Notes.",)}


def test_equal_bindings_open_what_all_of_them_open(olivia: Contract, alice: Contract) -> None:
    create_policy(olivia, "purpose", {"where": {"tags": ["a"]}, "purposes": ["x", "y"]}, name="a")
    create_policy(olivia, "purpose", {"where": {"tags": ["b"]}, "purposes": ["y", "z"]}, name="b")
    alice.add("Both notes.", tags=["a", "b"])
    run_jobs()
    for purpose, count in (("x", 0), ("y", 1), ("z", 0)):
        assert alice.get("memories/", x_memory_purpose=purpose).json["count"] == count, purpose


def test_a_binding_of_one_tenant_binds_no_other(olivia: Contract, charlie: Contract) -> None:
    create_policy(olivia, "purpose", {"where": {}, "purposes": ["audit"]})
    charlie.add("Theirs.")
    assert charlie.list_contents() == ["Theirs."]


def _where(chance: random.Random) -> Where:
    def some(*words: str) -> frozenset[str]:
        return frozenset(chance.sample(words, chance.choice([0, 0, 1, 2])))

    return Where(
        namespace=chance.choice(["", "/a", "/a/b", "/a_b", "/x"]),
        semantic_types=some("fact", "goal"),
        sensitivities=some("public", "restricted"),
        tags=some("p", "q"),
    )


def test_the_query_says_of_every_memory_what_the_rules_say(world: World, alice: Contract, full_size: bool) -> None:
    """Random memories under random policies: the condition in SQL against the pure rule, memory by memory."""
    chance = random.Random(7)
    items = [
        {
            "content": f"Memory {number}.",
            "namespace": chance.choice(["/a", "/a/b", "/a/b/c", "/a_b", "/axb", "/y"]),
            "semantic_type": chance.choice(["fact", "goal"]),
            "sensitivity": chance.choice(["public", "restricted"]),
            "tags": chance.sample(["p", "q", "r"], chance.randint(0, 3)),
        }
        for number in range(60)
    ]
    assert alice.post("memories/bulk/", {"items": items}).status == 201
    compared = denials = 0
    with acting(world.alice.actor):
        cubes = list(Cube.objects.select_related("namespace"))
        for _ in range(2_000 if full_size else 100):
            rules = [
                Rule(UUID(int=n), f"p{n}", 1, Purposes(_where(chance), frozenset(chance.sample("xyz", 2))))
                for n in range(chance.randint(1, 6))
            ]
            where = rules[0].document.where
            meant = set(Cube.objects.filter(where_condition(where)).values_list("id", flat=True))
            assert meant == {cube.id for cube in cubes if matches(where, facts_of(cube))}
            levels = purpose_levels(rules, chance.choice(["x", "y", ""]))
            condition = denied_rows(levels)
            denied = set(Cube.objects.filter(condition).values_list("id", flat=True)) if condition else set()
            assert denied == {cube.id for cube in cubes if is_denied(levels, facts_of(cube))}
            compared, denials = compared + len(cubes), denials + len(denied)
    assert 0 < denials < compared


def test_page_names_the_purpose_policy_and_keeps_what_was_written(notes: dict[str, str], world: World) -> None:
    written = "The otter was given 40 mg on Monday morning."
    form = {"version": "1", "content": written, "title": "", "tags": ""}
    form |= {"semantic_type": "fact", "sensitivity": "internal"}
    response = signed_in(world.alice).post(f"/memories/{notes['/clinic']}/edit/", form)
    page = response.content.decode()
    assert response.status_code == 403
    assert "The policy clinic allows this only for certain purposes, and you have chosen none." in page
    assert "Choose another purpose at the top of the page" in page
    assert "Your role does not allow it" not in page
    assert written in page
