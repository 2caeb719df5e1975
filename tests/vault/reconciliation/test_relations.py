"""New statements are reconciled with earlier ones where they are stored: messages, content, turns, calls and jobs."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.database import acting
from memos_web.config import LlmChoice
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.api.test_chat_commands import begin
from tests.vault.chat.test_model import make_stream
from tests.vault.outbox import run_jobs
from tests.vault.reader.test_modelled import PATH, make_completion
from vault.models import Cube
from vault.providers.ports import ProviderUnavailable
from vault.reconciliation.relations import RelationKind, read_relations

OLD, NEW = "The nurse works nights on the cardiac ward.", "Started at the pacemaker clinic on the 14th, days only."
EARLY, LATE = "2025-03-02T09:00:00+00:00", "2025-05-04T09:00:00+00:00"
ENDING = ("supersedes", "corrects", "cancels")


@dataclass
class Judge:
    """A scripted model. relation: its answer for pairs with NEW; it keeps each sentence but greetings; asked: the
    statements that it was to compare."""

    relation: str = "adds"
    asked: list[list[dict[str, Any]]] = field(default_factory=list)

    def handle(self, request: Request) -> Response:
        body = request.get_json()
        if body.get("stream"):
            return make_stream("Right, ", "noted.")
        data = json.loads(body["messages"][1]["content"])
        if "pages" in data:  # what an ended session told is distilled
            return Response(status=400)
        reply = self.compare(data["statements"]) if "statements" in data else keep_all(data["sentences"])
        return make_completion(json.dumps(reply))

    def compare(self, statements: list[dict[str, Any]]) -> dict[str, Any]:
        self.asked.append(statements)
        rows = [
            {
                "statement": new["number"],
                "earlier": old["number"],
                "relation": self.relation if NEW in new["text"] else "adds",
            }
            for new in statements
            for old in new["earlier"]
        ]
        return {"relations": rows}


def keep_all(sentences: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [{"number": load["number"], "keep": "Hello" not in load["text"], "kind": "fact"} for load in sentences]
    return {"intent": "add", "about": "", "sentences": rows}


@pytest.fixture
def judge(httpserver: HTTPServer) -> Iterator[Judge]:
    found = Judge()
    httpserver.expect_request(PATH).respond_with_handler(found.handle)
    with override_settings(MEMOS_LLM=LlmChoice(url=httpserver.url_for("/v1"), key="k", model="tiny")):
        yield found


def add_messages(who: Contract, text: str, at: str, **fields: Any) -> Any:
    message = {"role": "user", "content": f"Hello again! {text}", "timestamp": at}
    reply = who.post("memories/", {"messages": [message], "session_id": at, **fields})
    run_jobs()
    return reply


def add_content(who: Contract, text: str, at: str, **fields: Any) -> Any:
    return who.post("memories/", {"content": text, **fields})


def add_turn(who: Contract, text: str, at: str) -> Any:
    reply = who.post(begin(who), {"content": text})
    run_jobs()
    return reply


def add_later(who: Contract, text: str, at: str) -> Any:
    reply = who.post("memories/?async=true", {"content": text})
    run_jobs()
    return reply


PATHS: dict[str, Callable[..., Any]] = {
    "messages": add_messages,
    "content": add_content,
    "turn": add_turn,
    "job": add_later,
}


def stored(world: World, text: str) -> Cube:
    """The long-term memory with a text, of alice."""
    with acting(world.alice.actor):
        return next(
            cube for cube in Cube.objects.filter(layer="long_term").order_by("id") if opened(world, cube) == text
        )


def opened(world: World, cube: Cube) -> str:
    from vault.cubes.selectors import cube_get

    return cube_get(actor=world.alice.actor, cube_id=cube.id).words.content


@pytest.mark.parametrize("path", [*PATHS])
def test_model_ends_an_earlier_statement_on_every_path(world: World, alice: Contract, judge: Judge, path: str) -> None:
    PATHS[path](alice, OLD, EARLY)
    judge.relation = "supersedes"
    assert PATHS[path](alice, NEW, LATE).status in {201, 202}
    older, newer = stored(world, OLD), stored(world, NEW)
    assert older.superseded_by == newer.id
    assert older.valid_to is not None
    assert newer.valid_to is None
    assert [(load["text"], load["earlier"][0]["text"]) for load in judge.asked[-1]] == [(NEW, OLD)]


@pytest.mark.parametrize("relation", [*RelationKind])
def test_reply_says_what_a_statement_changed(alice: Contract, judge: Judge, relation: str) -> None:
    first = add_messages(alice, OLD, EARLY).json["results"][-1]["id"]
    judge.relation = relation
    reply = add_messages(alice, NEW, LATE).json
    change = [{"id": first, "by": reply["results"][-1]["id"], "relation": str(relation)}]
    assert reply["superseded"] == (change if relation in ENDING else [])
    assert reply["conflicts"] == (change if relation == "contradicts" else [])
    ended = alice.get(f"memories/{first}/").json["valid_to"]
    assert ended == ("2025-05-04T09:00:00Z" if relation in ENDING else None), "it ends when its successor was said"


def test_search_puts_the_statement_that_holds_before_what_it_replaced(alice: Contract, judge: Judge) -> None:
    older = add_messages(alice, OLD, EARLY).json["results"][-1]["id"]
    judge.relation = "supersedes"
    newer = add_messages(alice, NEW, LATE).json["results"][-1]["id"]
    run_jobs()
    reply = alice.post("memories/search/", {"query": "Who works nights on the cardiac ward?"}).json["results"]
    places = {row["id"]: (at, row["score"]) for at, row in enumerate(reply)}
    assert places[newer][0] < places[older][0]
    assert places[newer][1] >= places[older][1]
    then = {"query": "Who works nights on the cardiac ward?", "as_of": "2025-04-01T00:00:00Z"}
    assert next(row["id"] for row in alice.post("memories/search/", then).json["results"]) == older


def test_contradiction_waits_in_the_inbox_and_a_person_decides(alice: Contract, judge: Judge) -> None:
    first = add_messages(alice, OLD, EARLY).json["results"][-1]["id"]
    judge.relation = "contradicts"
    second = add_messages(alice, NEW, LATE).json["results"][-1]["id"]
    (review,) = alice.get("reviews/?kind=conflict").json["results"]
    assert (review["memory_id"], review["other_memory_id"]) == (first, second)
    assert alice.post(f"reviews/{review['id']}/accept/", {}).status == 200
    assert alice.get(f"memories/{first}/").json["superseded_by"] == second


def test_statement_of_an_earlier_day_ends_no_later_one(alice: Contract, judge: Judge) -> None:
    add_messages(alice, NEW, LATE)
    judge.relation = "supersedes"
    assert add_messages(alice, OLD, EARLY).json["superseded"] == []


def test_statement_of_another_persona_ends_nothing(alice: Contract, judge: Judge) -> None:
    for name in ("Ana", "Rowan"):
        alice.post("personas/", {"name": name})
    add_messages(alice, OLD, EARLY, persona="Ana")
    judge.relation = "supersedes"
    assert add_messages(alice, NEW, LATE, persona="Rowan").json["superseded"] == []
    assert add_messages(alice, NEW, LATE).json["superseded"] == []
    assert add_messages(alice, NEW, LATE, persona="Ana").json["superseded"] != []


def test_statement_about_another_subject_ends_nothing(alice: Contract, judge: Judge) -> None:
    add_content(alice, OLD, EARLY, subject="patient-1")
    judge.relation = "supersedes"
    assert add_content(alice, NEW, LATE, subject="patient-2").json["superseded"] == []
    assert add_content(alice, f"{NEW} Really.", LATE, subject="patient-1").json["superseded"] != []


def test_member_does_not_end_a_statement_of_another_member(alice: Contract, bob: Contract, judge: Judge) -> None:
    add_content(alice, OLD, EARLY)
    judge.relation = "supersedes"
    reply = add_content(bob, NEW, LATE)
    assert reply.status == 403 or reply.json["superseded"] == []


def test_held_statement_does_not_end(world: World, alice: Contract, olivia: Contract, judge: Judge) -> None:
    first = add_content(alice, OLD, EARLY).json["results"][0]["id"]
    assert olivia.post("holds/", {"reason": "An audit.", "memory_id": first}).status in {200, 201, 202}
    run_jobs()
    judge.relation = "supersedes"
    assert add_content(alice, NEW, LATE).json["superseded"] == []


@pytest.mark.parametrize(
    ("old", "new"), [("I live in Lisbon.", "I moved to Porto."), ("我住在北京。", "我现在住在上海。")], ids=["en", "zh"]
)
@pytest.mark.parametrize("path", [*PATHS])
def test_rules_end_a_statement_without_a_model(world: World, alice: Contract, path: str, old: str, new: str) -> None:
    PATHS[path](alice, old, EARLY)
    PATHS[path](alice, new, LATE)
    assert stored(world, old).superseded_by == stored(world, new).id


def test_statements_without_a_cue_are_not_searched_for_without_a_model(world: World, alice: Contract) -> None:
    add_content(alice, OLD, EARLY)
    assert add_content(alice, NEW, LATE).json["superseded"] == []


@each_case("reply", [None, [], {"relations": "all"}, {"relations": [1]}])
def test_reply_of_another_shape_is_an_error(reply: Any) -> None:
    with pytest.raises(ValueError, match="relation"):
        read_relations(reply, [])


def test_statement_is_stored_and_reconciled_while_the_embedder_is_down(
    alice: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = add_content(alice, "I live in Lisbon.", EARLY).json["results"][0]["id"]

    def refuse(active: str) -> None:
        raise ProviderUnavailable("the embedder does not answer")

    monkeypatch.setattr("vault.retrieval.selectors.question_embedder", refuse)
    reply = add_content(alice, "I live in Porto.", LATE)
    assert (reply.status, [change["id"] for change in reply.json["superseded"]]) == (201, [first])
