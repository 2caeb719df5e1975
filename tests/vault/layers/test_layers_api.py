"""The layers over REST: to the persona's own member, and to nobody who may not."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from governance.database import acting, database_now
from governance.errors import Forbidden
from governance.models import Persona
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.layers.constants import tenant_constants_set
from vault.layers.rules import SegmentState, coldest, is_hot, merge_constants
from vault.layers.scores import coldest_segments, hot_segments
from vault.models import Segment

GARDEN = "The tomatoes in the garden need water."


def persona_of(world: World, name: str) -> str:
    with acting(world.person(name).actor):
        return str(Persona.objects.get(member_id=world.person(name).member.id).id)


def talk(client: Contract, count: int, text: str = GARDEN) -> None:
    for number in range(count):
        body = {
            "session_id": "talk",
            "messages": [
                {"role": "user", "content": f"{text} Day {number}."},
                {"role": "assistant", "content": f"Noted, day {number}."},
            ],
        }
        assert client.post("memories/", body).status == 201
    run_jobs()


@pytest.fixture
def mind(world: World, alice: Contract) -> str:
    talk(alice, 9)
    return persona_of(world, "alice")


def test_queue_holds_the_last_seven_pages_with_their_chain(alice: Contract, mind: str) -> None:
    found = alice.get(f"personas/{mind}/stm/").json
    assert found["count"] == 7
    assert [page["position"] for page in found["results"]] == [9, 8, 7, 6, 5, 4, 3]
    assert {page["chain"] for page in found["results"]} == {found["results"][-1]["chain"]}
    newest = found["results"][0]
    assert (newest["query"]["content"], newest["response"]["content"]) == (f"{GARDEN} Day 8.", "Noted, day 8.")
    assert newest["meta"].startswith("The tomatoes")
    assert alice.get(f"personas/{mind}/stm/?stream={newest['stream']}").json["count"] == 7


def test_segments_tell_their_heat_by_its_parts(alice: Contract, mind: str) -> None:
    (segment,) = alice.get(f"personas/{mind}/segments/").json["results"]
    assert (segment["pages"], segment["unpromoted"], segment["visits"], segment["state"]) == (2, 2, 0, "resident")
    assert segment["heat"] == pytest.approx(3.0, abs=1e-3)
    assert "garden" in " ".join(segment["keywords"])
    assert segment["summary"]


def test_set_phrases_of_the_chat_are_no_topic_of_a_segment(world: World, alice: Contract) -> None:
    """Each of these is answered with "Noted. I will remember this.", or with quotes after "From your memories:"."""
    persona = persona_of(world, "alice")
    assert alice.patch(f"personas/{persona}/settings/", {"stm_pages": 1}).status == 200
    conversation = alice.post("conversations/", {}).json["id"]
    for said in ("I run along the harbour.", "My kiln is green.", "Where do I run?", "Which colour has my kiln?"):
        assert alice.post(f"conversations/{conversation}/turns/", {"content": said}).status == 201
        run_jobs()
    segments = alice.get(f"personas/{persona}/segments/").json["results"]
    named = {word for segment in segments for keyword in segment["keywords"] for word in keyword.split()}
    assert named == {"run", "along", "harbour", "kiln", "green"}
    assert len(segments) == 2
    summaries = " ".join(segment["summary"] for segment in segments)
    assert "I run along the harbour." in summaries
    assert not [phrase for phrase in ("Noted", "I will remember", "From your memories") if phrase in summaries]


def test_reading_a_page_visits_its_segment_once_for_a_request(world: World, alice: Contract, mind: str) -> None:
    found = alice.search("tomatoes in the garden", session_id="talk", top_k=100)
    assert len(found) > 4
    run_jobs()
    with acting(world.alice.actor):
        assert Segment.objects.get().visits == 1


def test_coldest_segment_leaves_and_its_memories_are_archived(world: World, alice: Contract, mind: str) -> None:
    assert alice.patch(f"personas/{mind}/settings/", {"segments": 1, "stm_pages": 1, "theta": 1.9}).status == 200
    talk(alice, 3, "The train to Porto leaves at noon.")
    evicted = alice.get(f"personas/{mind}/segments/?evicted=true").json
    assert evicted["count"] >= 1
    assert alice.get(f"personas/{mind}/segments/").json["count"] == 1
    archived = alice.search("tomatoes garden Day 0", session_id="talk", include_archived=True, top_k=50)
    states = {memory["content"]: memory["state"] for memory in archived}
    assert states[f"{GARDEN} Day 0."] == "archived"


def test_constants_are_changed_only_by_the_personas_owner(
    world: World, alice: Contract, bob: Contract, charlie: Contract, mind: str
) -> None:
    address = f"personas/{mind}/settings/"
    assert alice.patch(address, {"tau": 3, "stm_pages": 4}).json["tau"] == 3
    assert alice.get(address).json["stm_pages"] == 4
    assert alice.patch(address, {"tau": None}).json["tau"] == 5
    assert bob.patch(address, {"tau": 1}).status == 404
    assert charlie.patch(address, {"tau": 1}).status == 404
    assert alice.get(address).json["tau"] == 5


def test_constants_of_the_tenant_hold_for_personas_without_their_own(world: World, alice: Contract, mind: str) -> None:
    tenant_constants_set(actor=world.olivia.actor, values={"theta": 0.4, "tau": 8})
    assert alice.patch(f"personas/{mind}/settings/", {"tau": 2}).json["theta"] == 0.4
    assert alice.get(f"personas/{mind}/settings/").json["tau"] == 2
    with pytest.raises(Forbidden):
        tenant_constants_set(actor=world.alice.actor, values={"tau": 1})


def test_only_its_owner_sets_constants_of_the_tenant(
    alice: Contract, bob: Contract, olivia: Contract, charlie: Contract, mind: str
) -> None:
    address = "layers/settings/"
    assert olivia.patch(address, {"theta": 0.4, "tau": 8}).json["theta"] == 0.4
    assert alice.get(f"personas/{mind}/settings/").json["tau"] == 8
    assert alice.get(address).json["tau"] == 8
    assert charlie.get(address).json["tau"] == 5  # of another tenant
    for refused in (alice, bob):
        assert refused.patch(address, {"tau": 1}).status == 403
    assert olivia.patch(address, {"theta": None, "tau": 9}).json["theta"] == 0.6
    assert olivia.patch(address, {"tau": -1, "stm_pages": 0.5}).status == 400
    assert olivia.get(address).json["tau"] == 9


@each_case("values", [{"mu": 0}, {"stm_pages": 2.5}, {"unknown": 1}, {"theta": "high"}])
def test_constant_out_of_its_range_is_refused(alice: Contract, mind: str, values: dict[str, Any]) -> None:
    assert alice.patch(f"personas/{mind}/settings/", values).status == 400


@pytest.mark.parametrize("part", ["stm", "segments", "settings"])
def test_layers_of_a_persona_are_its_members_own(bob: Contract, charlie: Contract, mind: str, part: str) -> None:
    assert bob.get(f"personas/{mind}/{part}/").status == 404
    assert charlie.get(f"personas/{mind}/{part}/").status == 404


def test_heat_in_sql_is_the_heat_of_the_rules(world: World, alice: Contract, mind: str) -> None:
    """Also where recency has fallen below what PostgreSQL computes."""
    persona = UUID(mind)
    assert alice.patch(f"personas/{mind}/settings/", {"theta": 1.9, "stm_pages": 1}).status == 200
    talk(alice, 3, "The train to Porto leaves at noon.")
    with acting(world.alice.actor):
        rows = list(Segment.objects.filter(persona_id=persona, evicted_at=None).order_by("id"))
        assert len(rows) > 2
        for place, row in enumerate(rows):
            moment = database_now() - timedelta(days=30 * place)
            Segment.objects.filter(id=row.id).update(visits=place % 2, visited_at=moment)
        rows = list(Segment.objects.filter(persona_id=persona, evicted_at=None))
        for constants in (merge_constants({"tau": 1.2}), merge_constants({"mu": 1, "tau": 0.5, "beta": 0})):
            now = database_now()
            states = {
                row.id: SegmentState(
                    row.visits, row.unpromoted, (now - row.visited_at).total_seconds(), row.visited_at, row.created_at
                )
                for row in rows
            }
            hot = {key for key, state in states.items() if is_hot(state, constants)}
            assert set(hot_segments(persona, constants).values_list("id", flat=True)) == hot
            assert coldest_segments(persona, constants, 1) == [coldest(states, constants)]
        assert hot < set(states)


def test_segments_are_listed_where_recency_is_nothing(world: World, alice: Contract, mind: str) -> None:
    assert alice.patch(f"personas/{mind}/settings/", {"mu": 1}).status == 200
    with acting(world.alice.actor):
        Segment.objects.update(visited_at=database_now() - timedelta(days=365))
    (segment,) = alice.get(f"personas/{mind}/segments/").json["results"]
    assert (segment["recency"], segment["heat"]) == (0.0, 2.0)
    assert signed_in(world.alice).get(f"/layers/?persona={mind}").status_code == 200
