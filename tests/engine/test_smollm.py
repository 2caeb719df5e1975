"""Turns with a real language model: SmolLM2 on the local engine, where it is installed."""

from collections.abc import Iterator

import pytest
from django.test import override_settings

from memos_web.config import LlmChoice
from tests.engine.served import NAME, TOKEN, is_served_here, serve_smollm
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.chat.rules import UNSUPPORTED

pytestmark = [pytest.mark.full, pytest.mark.apart(is_served_here(), "make engine-environment")]
RULES = [
    "Visitors leave their bags in the cloakroom beside the entrance before they enter the halls of the museum.",
    "The museum closes at six, and the last guided tour begins at half past four in the great hall.",
    "Photographs are allowed without a flash, except in the room of the watercolours on the second floor.",
    "Children under twelve enter for free, if an adult is with them, on every day but the first Sunday.",
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base address of a served SmolLM2."""
    with serve_smollm(tmp_path_factory.mktemp("smollm") / "log", OMP_NUM_THREADS="1") as served:
        yield served


@pytest.fixture(autouse=True)
def model(address: str) -> Iterator[None]:
    with override_settings(MEMOS_LLM=LlmChoice(url=address, key=TOKEN, model=NAME, reads=False, engine="local")):
        yield


def test_real_model_answers_in_a_stream_and_its_sentences_are_attributed(alice: Contract) -> None:
    memory = alice.add("My sister Elena lives in Porto with her two kids.")
    run_jobs()
    place = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    events = alice.stream(place, {"content": "Where does my sister Elena live?"})
    tokens = [event.data["text"] for event in events if event.name == "token"]
    turn = events[-1].data
    assert events[-1].name == "done"
    assert len(tokens) > 1
    assert turn["content"].startswith("".join(tokens)[:10])
    assert turn["model"].startswith(NAME)
    assert turn["usage"]["prompt_tokens"] > turn["usage"]["completion_tokens"] > 0
    assert {citation["memory_id"] for citation in turn["citations"]} <= {memory["id"]}
    assert turn["citations"] or UNSUPPORTED in turn["content"], turn["content"]


def test_statement_to_a_real_model_is_stored_by_patterns(alice: Contract) -> None:
    place = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    assert alice.post(place, {"content": "I love green tea."}).json["model"].startswith(NAME)
    found = alice.get("memories/?semantic_type=preference").json["results"]
    assert [memory["content"] for memory in found] == ["I love green tea."]


def test_block_enters_as_a_cache_and_no_longer_once_it_is_erased(alice: Contract) -> None:
    ids = [alice.add(rule)["id"] for rule in RULES]
    run_jobs()
    persona = alice.get("me/").json["personas"][0]["id"]
    body = {"memory_ids": ids, "title": "House rules", "persona": persona}
    job = alice.post("forms/", body).json["job"]["id"]
    run_jobs()
    done = alice.get(f"jobs/{job}/").json
    assert done["status"] == "succeeded", done
    form = alice.get(f"forms/{done['result']['form_id']}/").json
    assert form["tokens"] > 200
    asked = {"content": "When does the museum close?"}
    place = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    with_cache = alice.post(place, asked).json
    assert with_cache["usage"]["cached_tokens"] >= form["tokens"] - 1
    assert alice.get(f"forms/{form['id']}/").json["uses"] == 1
    assert alice.delete(f"forms/{form['id']}/").status == 204
    run_jobs()
    again = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    assert alice.post(again, asked).json["usage"]["cached_tokens"] < form["tokens"]


def test_second_block_is_moved_behind_the_first_and_read_less(alice: Contract) -> None:
    ids = [alice.add(rule)["id"] for rule in RULES]
    run_jobs()
    persona = alice.get("me/").json["personas"][0]["id"]
    forms = []
    for part in (ids[:2], ids[2:]):
        alice.post("forms/", {"memory_ids": part, "title": "House rules", "persona": persona})
        run_jobs()
        forms.append(alice.get("forms/").json["results"][0])
    second, first = forms
    assert set(second["quality"]) == {"rotated", "rotated+recompute(12)", "rotated+recompute(32)"}
    asked, cached = {"content": "When does the museum close?"}, []
    for composition in ("exact", "rotated"):
        assert alice.patch(f"forms/{second['id']}/", {"composition": composition}).status == 200
        place = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
        cached.append(alice.post(place, asked).json["usage"]["cached_tokens"])
    assert cached[0] >= first["tokens"] - 1
    assert cached[1] > cached[0] + 40
    assert [alice.get(f"forms/{form['id']}/").json["uses"] for form in (first, second)] == [2, 1]


def test_chat_through_a_cache_shows_and_prices_cached_tokens_and_charts_what_each_turn_saved(
    address: str, world: World, olivia: Contract
) -> None:
    """Through a tenant's own endpoint, which is the engine's."""
    ids = [olivia.add(rule)["id"] for rule in RULES]
    run_jobs()
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        body = {"model": NAME, "address": address, "key": TOKEN, "prompt_price": "100", "cached_price": "1"}
        assert olivia.post("models/", body).status == 201
        persona = olivia.get("me/").json["personas"][0]["id"]
        olivia.post("forms/", {"memory_ids": ids, "title": "House rules", "persona": persona})
        run_jobs()
        (form,) = olivia.get("forms/").json["results"]
        conversation = olivia.post("conversations/", {}).json["id"]
        questions = ("When does the museum close?", "Where do visitors leave their bags?", "Who enters for free?")
        turns = [olivia.post(f"conversations/{conversation}/turns/", {"content": asked}).json for asked in questions]
    for turn in turns:
        usage = turn["usage"]
        assert usage["cached_tokens"] >= form["tokens"] - 1
        expected = (100 * (usage["prompt_tokens"] - usage["cached_tokens"]) + usage["cached_tokens"]) / 1_000_000
        assert abs(float(turn["cost"]["amount"]) - expected) < 0.000001
    page = signed_in(world.olivia).get(f"/chat/{conversation}/turns/{turns[-1]['id']}/why/").content.decode()
    assert "As a cache, at the head of the prompt: mounted; the first word comes after" in page
    chart = " ".join(page.partition('<ol class="saved-turns">')[2].partition("</ol>")[0].split())
    for turn in turns:
        assert f"{turn['usage']['cached_tokens']} of {turn['usage']['prompt_tokens']} tokens" in chart
