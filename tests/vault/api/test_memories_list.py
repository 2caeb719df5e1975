"""GET memories/: filters in the address, pages that stay true under writes."""

import json
from datetime import timedelta
from urllib.parse import quote
from uuid import UUID

from django.conf import settings

from governance.database import acting
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, fields_at_fault
from vault.models import Cube

SITE = "http://testserver"


def test_the_newest_comes_first_and_count_counts_all(alice: Contract) -> None:
    for text in ("One.", "Two.", "Three."):
        alice.add(text)
    reply = alice.get("memories/?page_size=2")
    assert [memory["content"] for memory in reply.json["results"]] == ["Three.", "Two."]
    assert reply.json["count"] == 3
    assert reply.json["previous"] is None


def test_an_empty_list_is_an_envelope_too(alice: Contract) -> None:
    assert alice.get("memories/").json == {"count": 0, "next": None, "previous": None, "results": []}


def test_pages_miss_nothing_and_repeat_nothing_while_others_write(alice: Contract) -> None:
    memories = [alice.add(f"Number {number}.") for number in range(7)]
    page = alice.get("memories/?page_size=3&state=generated").json
    second_page = page["next"].removeprefix(SITE)
    seen = [memory["content"] for memory in page["results"]]
    alice.delete(f"memories/{memories[6]['id']}/")  # seen already
    while page["next"]:
        alice.add(f"Written after {len(seen)} were seen.")
        page = alice.get(page["next"].removeprefix(SITE)).json
        seen += [memory["content"] for memory in page["results"]]
    assert seen == [f"Number {number}." for number in reversed(range(7))]
    before = alice.get(alice.get(second_page).json["previous"].removeprefix(SITE)).json
    contents = [memory["content"] for memory in before["results"]]
    assert contents[1:] == ["Number 5.", "Number 4."]
    assert contents[0].startswith("Written after")


def test_a_page_holds_at_most_two_hundred(alice: Contract) -> None:
    assert alice.get("memories/?page_size=200").status == 200
    for size in ("201", "0", "-1", "ten", "", "²"):
        assert fields_at_fault(alice.get(f"memories/?page_size={size}")) == {"page_size"}


def test_each_filter_of_the_address_filters_count_and_results(alice: Contract) -> None:
    alice.add("Plain.")
    messages = [{"role": "user", "name": "Ann", "content": "I moved.", "message_id": "m-1"}]
    alice.post("memories/", {"messages": messages, "session_id": "s-1", "task_id": "t-1", "persona": "alice"})
    alice.add("Marked.", namespace="/team", tags=["a", "b"], semantic_type="goal", sensitivity="public")
    for asked, expected in {
        "namespace=/team": ["Marked."],
        "namespace=/users/alice": ["I moved.", "Plain."],
        "namespace=/nowhere": [],
        "persona=alice": ["I moved."],
        "state=generated": ["Marked.", "I moved.", "Plain."],
        "state=archived": [],
        "layer=short_term": ["I moved."],
        "type=plaintext": ["Marked.", "I moved.", "Plain."],
        "type=activation": [],
        "semantic_type=goal": ["Marked."],
        "sensitivity=public": ["Marked."],
        "source=api": ["Marked.", "I moved.", "Plain."],
        "speaker=ann": ["I moved."],
        "session_id=s-1": ["I moved."],
        "message_id=m-1": ["I moved."],
        "task_id=t-1": ["I moved."],
        "tags=a": ["Marked."],
        "tags=A": [],
        "tags=a&session_id=s-1": [],
        "created_after=2001-01-01T00:00:00Z": ["Marked.", "I moved.", "Plain."],
        "created_after=2001-01-01": ["Marked.", "I moved.", "Plain."],
        "created_before=2001-01-01": [],
        "created_after=2199-01-01T00:00:00Z": [],
        "created_before=2001-01-01T00:00:00Z": [],
    }.items():
        reply = alice.get(f"memories/?{asked}")
        assert reply.status == 200, asked
        assert [memory["content"] for memory in reply.json["results"]] == expected, asked
        assert reply.json["count"] == len(expected), asked


def test_a_persona_and_a_namespace_may_be_named_by_id(alice: Contract) -> None:
    memory = alice.add("Mine.", persona="alice")
    alice.add("Other.", namespace="/team")
    assert alice.list_contents(f"persona={memory['persona']['id']}") == ["Mine."]
    assert alice.list_contents(f"namespace={memory['namespace']['id']}") == ["Mine."]


def test_what_is_no_filter_is_refused(alice: Contract) -> None:
    for asked in (
        "speling=1",
        "state=asleep",
        "layer=top",
        "created_after=yesterday",
        "created_after=2026-13-01",
        "deleted=perhaps",
        "cursor=nonsense",
        "tags=%00",
        "session_id=%00",
        "namespace=%00",
    ):
        assert alice.get(f"memories/?{asked}").status == 400, asked


def test_each_sees_what_is_theirs_and_shared(world: World, alice: Contract, bob: Contract, olivia: Contract) -> None:
    alice.add("Alice's own.")
    alice.add("The team's.", namespace="/team")
    olivia.add("Olivia's own.")
    assert sorted(alice.list_contents()) == ["Alice's own.", "The team's."]
    assert bob.list_contents() == ["The team's."]
    assert sorted(olivia.list_contents()) == ["Alice's own.", "Olivia's own.", "The team's."]


def test_a_namespace_is_listed_with_all_below_it(alice: Contract) -> None:
    for path in ("/a", "/a/b", "/a/b/c", "/ab"):
        alice.add(f"In {path}.", namespace=path)
    assert alice.list_contents("namespace=/a") == ["In /a/b/c.", "In /a/b.", "In /a."]
    assert alice.list_contents("namespace=/a/b") == ["In /a/b/c.", "In /a/b."]


def test_filter_for_a_subtree_finds_what_lies_at_a_path_and_below(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    """LangGraph's `SearchOp.namespace_prefix` (libs/checkpoint/langgraph/store/base/__init__.py) asks for a prefix."""
    for path in ("/a", "/a/b", "/a/b/c", "/ab", "/users/alice/b"):
        alice.add(f"In {path}.", namespace=path)
    below = {"filters": {"namespace": {"under": "/a"}}}
    assert alice.search_contents("in", **below) == ["In /a.", "In /a/b.", "In /a/b/c."]
    assert alice.search_contents("in", filters={"NOT": below["filters"]}) == ["In /ab.", "In /users/alice/b."]
    assert alice.list_contents('filters={"namespace":{"under":"/a/b"}}') == ["In /a/b/c.", "In /a/b."]
    assert bob.search_contents("in", filters={"namespace": {"under": "/users/alice"}}) == []
    assert charlie.search_contents("in", **below) == []
    for wrong in ("/a b", "", 7, ["/a"]):
        assert alice.post("memories/search/", {"query": "in", "filters": {"namespace": {"under": wrong}}}).status == 400
    assert alice.post("memories/search/", {"query": "in", "filters": {"tags": {"under": "/a"}}}).status == 400


def test_deleted_memories_are_listed_for_who_may_restore_them(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    gone, kept, purged = (alice.add(text, namespace="/team")["id"] for text in ("Gone.", "Kept.", "Purged."))
    for item in (gone, purged):
        assert alice.delete(f"memories/{item}/").status == 204
    assert alice.delete(f"memories/{purged}/?purge=true").status == 204
    found = alice.get("memories/?deleted=true").json
    assert ([row["id"] for row in found["results"]], found["count"]) == ([gone], 1)
    assert found["results"][0]["deleted_at"] is not None
    assert [memory["id"] for memory in alice.get("memories/").json["results"]] == [kept]
    assert bob.get("memories/?deleted=true").status == 403
    assert charlie.get("memories/?deleted=true").json["count"] == 0
    assert alice.post(f"memories/{gone}/restore/").status == 200
    assert alice.get("memories/?deleted=true").json["count"] == 0


def test_expired_and_long_deleted_memories_are_not_listed_as_deleted(world: World, alice: Contract) -> None:
    expired, old = (alice.add(text, ttl_seconds=3600)["id"] for text in ("Expired.", "Old."))
    for item in (expired, old):
        assert alice.delete(f"memories/{item}/").status == 204
    with acting(world.alice.actor):
        rows = Cube.objects.filter(id=UUID(expired))
        rows.update(expires_at=rows.get().created_at)
        long_ago = rows.get().created_at - timedelta(days=settings.DELETED_GRACE_DAYS + 1)
        Cube.objects.filter(id=UUID(old)).update(deleted_at=long_ago)
    assert alice.get("memories/?deleted=true").json["count"] == 0


def test_a_date_is_a_time_in_filters_of_a_search_too(alice: Contract) -> None:
    alice.add("Anna sings.")
    for after, expected in (("2001-01-01", ["Anna sings."]), ("2199-01-01", [])):
        reply = alice.post("memories/search/", {"query": "Anna", "filters": {"created_at": {"gt": after}}})
        assert [memory["content"] for memory in reply.json["results"]] == expected


def test_a_list_takes_the_filters_of_a_search(alice: Contract) -> None:
    alice.add("tea", tags=["food"])
    alice.add("rain", tags=["weather"])
    alice.add("bread", tags=["food"], metadata={"kind": "baked"})
    either = quote(json.dumps({"AND": [{"tags": {"contains": "food"}}, {"NOT": {"metadata.kind": "baked"}}]}))
    assert alice.list_contents(f"filters={either}") == ["tea"]


@each_case("filters", ["{", "[]", "7", '{"colour": "red"}', '{"tags": "\\u0000"}'])
def test_a_list_with_broken_filters_names_them(alice: Contract, filters: str) -> None:
    assert any(
        field.startswith("filters") for field in fields_at_fault(alice.get(f"memories/?filters={quote(filters)}"))
    )
