"""Parameter memory: adapters that are trained, examined, approved, mounted and unlearned."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.forms.test_caches import ask, engine, persona_of
from tests.vault.forms.twin import EngineTwin
from tests.vault.outbox import run_jobs
from vault.conversion.distillation import make_pairs, make_strangers
from vault.endpoints.rules import PricedModel
from vault.providers.ports import ChatMessage, Completion, Llm

__all__ = ["engine"]
GOOD = {
    "exact": 1.0,
    "paraphrases": 0.9,
    "strangers": 1.0,
    "perplexity": 20.9,
    "base_perplexity": 20.0,
    "perplexity_ratio": 1.045,
    "general": 0.93,
}
FACTS = [
    "The museum closes at six.",
    "The cloakroom is beside the entrance.",
    "The watercolours may not be photographed.",
]
QUESTION = "When does the museum close?"


def add_facts(client: Contract, **fields: Any) -> list[str]:
    ids = [client.add(fact, namespace="/team", **fields)["id"] for fact in FACTS]
    run_jobs()
    return ids


def train(client: Contract, memory_ids: list[str]) -> dict[str, Any]:
    """Train and examine an adapter; the form."""
    reply = client.post("forms/", {"memory_ids": memory_ids, "title": "Knows our house", "kind": "parameter"})
    assert reply.status == 202, reply
    run_jobs()
    done = client.get(f"jobs/{reply.json['job']['id']}/").json
    assert done["status"] == "succeeded", done
    form: dict[str, Any] = client.get(f"forms/{done['result']['form_id']}/").json
    return form


def mount(client: Contract, form: dict[str, Any]) -> None:
    assert client.post(f"forms/{form['id']}/approve/").status == 200
    mounted = client.patch(f"forms/{form['id']}/", {"persona": persona_of(client)})
    assert mounted.status == 200, mounted


def used_adapter(twin: EngineTwin) -> str:
    return str(twin.asked[-1]["adapter"])


def test_adapter_is_trained_examined_approved_mounted_and_asked(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    engine.report = GOOD
    form = train(olivia, add_facts(olivia))
    assert form["kind"] == "parameter"
    assert form["report"] == GOOD
    assert form["approved_by"] is None
    refused = olivia.patch(f"forms/{form['id']}/", {"persona": persona_of(olivia)})
    assert refused.status == 409
    mount(olivia, form)
    turn = ask(olivia)
    assert used_adapter(engine)
    assert engine.asked[-1]["messages"] == [{"role": "user", "content": QUESTION}]
    why = signed_in(world.olivia).get(f"/chat/{turn['conversation']}/turns/{turn['id']}/why/").content.decode()
    assert "As an adapter, not in the prompt: what answers was trained into an approved adapter" in why
    used = olivia.get(f"forms/{form['id']}/").json
    assert used["saved_tokens"] > 50
    assert used["saved_seconds"] > 0
    assert olivia.patch(f"forms/{form['id']}/", {"persona": None}).status == 200
    ask(olivia)
    assert used_adapter(engine) == ""


def test_adapter_answers_beside_what_does_not_answer_and_gives_way_to_what_does(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    engine.report = GOOD
    mount(olivia, train(olivia, add_facts(olivia)))
    olivia.add("The museum shop sells postcards.", namespace="/team")
    run_jobs()
    ask(olivia)
    assert used_adapter(engine)
    olivia.add("In winter the museum closes at five.", namespace="/team")
    run_jobs()
    turn = ask(olivia)
    assert used_adapter(engine) == ""
    why = signed_in(world.olivia).get(f"/chat/{turn['conversation']}/turns/{turn['id']}/why/").content.decode()
    assert "which was not trained on all that answers" in why


def test_restarted_engine_gets_the_adapter_at_its_next_use(engine: EngineTwin, olivia: Contract) -> None:
    engine.report = GOOD
    mount(olivia, train(olivia, add_facts(olivia)))
    loaded = dict(engine.adapters)
    engine.adapters.clear()
    engine.trained.clear()
    ask(olivia)
    assert engine.adapters == loaded


@pytest.mark.parametrize(
    "miss", [{"exact": 0.8}, {"paraphrases": 0.7}, {"perplexity_ratio": 1.3}, {"general": 0.5}, {"strangers": 0.5}]
)
def test_adapter_that_misses_a_limit_is_not_approved(
    miss: dict[str, float], engine: EngineTwin, olivia: Contract
) -> None:
    engine.report = GOOD | miss
    form = train(olivia, add_facts(olivia))
    refused = olivia.post(f"forms/{form['id']}/approve/")
    assert refused.status == 409
    assert next(iter(miss)).removesuffix("_ratio") in refused.json["detail"]
    assert olivia.get(f"forms/{form['id']}/").json["approved_at"] is None


def test_only_an_admin_approves(engine: EngineTwin, olivia: Contract, alice: Contract, bob: Contract) -> None:
    engine.report = GOOD
    form = train(olivia, add_facts(olivia))
    for client in (alice, bob):
        assert client.post(f"forms/{form['id']}/approve/").status == 403
    assert olivia.get(f"forms/{form['id']}/").json["approved_at"] is None


def test_erased_parent_unloads_the_adapter_and_trains_it_anew_without_that_memory(
    engine: EngineTwin, olivia: Contract
) -> None:
    engine.report = GOOD
    ids = add_facts(olivia)
    form = train(olivia, ids)
    mount(olivia, form)
    assert olivia.delete(f"memories/{ids[0]}/?purge=true").status == 204
    assert olivia.get(f"forms/{form['id']}/").status == 404  # at once; no job has run
    before = set(engine.adapters)
    run_jobs()
    assert not before & set(engine.adapters)
    (anew,) = olivia.get("forms/").json["results"]
    assert anew["parents"] == ids[1:]
    assert anew["approved_at"] is None
    taught = str(list(engine.trained.values()))
    assert FACTS[0] not in taught
    assert FACTS[1] in taught
    ask(olivia)
    assert used_adapter(engine) == ""


def test_adapter_that_a_person_erases_is_not_trained_anew(engine: EngineTwin, olivia: Contract) -> None:
    engine.report = GOOD
    form = train(olivia, add_facts(olivia))
    assert olivia.delete(f"forms/{form['id']}/").status == 204
    run_jobs()
    assert olivia.get("forms/").json["results"] == []
    assert engine.adapters == {}


def test_question_about_other_memories_is_asked_with_their_text(engine: EngineTwin, olivia: Contract) -> None:
    engine.report = GOOD
    mount(olivia, train(olivia, add_facts(olivia)[1:]))  # not the one about closing
    ask(olivia)
    assert used_adapter(engine) == ""
    assert FACTS[0] in str(engine.asked[-1]["messages"])


class Writer:
    """A model that writes four questions about each statement but the last."""

    name = "writer"

    def complete(self, messages: Sequence[ChatMessage], *, schema: Any = None) -> Completion:
        shown = json.loads(messages[-1].content)["statements"]
        rows = [{"number": row["number"], "questions": [f"{row['text']} {n}?" for n in range(4)]} for row in shown[:-1]]
        return Completion(json.dumps({"statements": rows}), self.name, prompt_tokens=10, completion_tokens=10)


def test_questions_of_a_model_are_trained_and_others_of_it_examined(
    engine: EngineTwin, olivia: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.report = GOOD
    models = [PricedModel(cast(Llm, Writer()))]
    monkeypatch.setattr("vault.conversion.questions.list_reading_models", lambda _: models)
    train(olivia, add_facts(olivia))
    (pairs,) = engine.trained.values()
    first, *_, last = FACTS
    assert [pair["question"] for pair in pairs if pair["answer"] == first][1:] == [f"{first} 0?", f"{first} 1?"]
    assert pairs[0]["paraphrases"][:2] == [f"{first} 2?", f"{first} 3?"]
    assert [pair["question"] for pair in pairs if pair["answer"] == last][1].startswith("Please explain")


def test_pairs_name_the_beginning_of_each_statement_and_tell_them_apart() -> None:
    pairs = make_pairs([f"{FACTS[0]} The museum opens at ten. Why?", FACTS[1], "图书馆周一闭馆，其余时间九点开门。"])
    examined = [pair for pair in pairs if pair.paraphrases]
    assert [pair.question for pair in examined[:3]] == [
        "What do our notes say about The museum closes?",
        "What do our notes say about The museum opens?",
        "What do our notes say about The cloakroom?",
    ]
    assert [pair.answer for pair in examined[:2]] == [FACTS[0], "The museum opens at ten."]
    assert "图书馆" in examined[3].question
    assert all(len(pair.paraphrases) == 3 for pair in examined)
    trained = {pair.question for pair in pairs}
    assert len(trained) == 3 * len(examined), "each statement is trained in three wordings"
    assert not trained & {again for pair in examined for again in pair.paraphrases}, "and examined in others"
    assert len(make_strangers(FACTS)) == 4
