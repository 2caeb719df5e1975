"""Figures of `benchmark answers`: outcomes, scores of texts, and the method without one part."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.answer_parts import WHOLE, remove_parts, replies_without
from benchmarks.answers import DATA, Labelled, Outcome, outcome_of, samples
from benchmarks.text_scores import bleu1, is_judged_right, token_f1
from benchmarks.training import fit_logistic
from vault.chat.rules import NOTHING, Evidence, extractive_answer
from vault.providers.ports import ChatMessage, Completion

WHERE = Labelled("Where do I live?", ("Harbour Street",))
NONE = Labelled("What wine does Ingrid like?", ())


@pytest.mark.parametrize(
    ("question", "reply", "by_model", "outcome"),
    [
        (WHERE, "You live in harbour street. [1]", True, Outcome.RIGHT),
        (WHERE, "You live in Lisbon. [?]", True, Outcome.WRONG),
        (WHERE, "The memories do not mention where you live.", True, Outcome.DECLINED),
        (WHERE, "I do not know more than this: Harbour Street.", True, Outcome.RIGHT),
        (NONE, "I don't know which wine Ingrid likes.", True, Outcome.DECLINED),
        (NONE, "She likes red wine.", True, Outcome.WRONG),
        (WHERE, "From your memories:\n“I do not know the street.” [1]", False, Outcome.WRONG),
        (NONE, "Nothing in your memories answers this.", False, Outcome.DECLINED),
        (WHERE, f"Harbour Street {'x' * 400}", True, Outcome.WRONG),
    ],
)
def test_a_reply_has_one_outcome(question: Labelled, reply: str, by_model: bool, outcome: Outcome) -> None:
    assert outcome_of(question, reply, by_model=by_model) is outcome


def test_scores_compare_tokens_with_the_best_answer() -> None:
    assert token_f1("The Harbour Street [1]", ["harbour street", "x"]) == 1.0
    assert token_f1("in Harbour Street", ["Harbour Street"]) == pytest.approx(0.8)
    assert bleu1("in Harbour Street", ["Harbour Street"]) == pytest.approx(2 / 3)
    assert bleu1("Harbour", ["Harbour Street"]) == pytest.approx(0.368, abs=0.001)
    assert token_f1("住在滨江路", ["滨江路"]) == pytest.approx(0.75)
    assert token_f1("", ["x"]) == bleu1("", ["x"]) == token_f1("x", []) == 0.0


class Judge:
    """A judge whose reply is given; `asked` are the words that it got."""

    name = "judge"

    def __init__(self, reply: str) -> None:
        self.reply, self.asked = reply, ""

    def complete(self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None) -> Completion:
        self.asked = messages[-1].content
        return Completion(self.reply, "judge", None, None)


@pytest.mark.parametrize(("reply", "right"), [("Correct.", True), ("WRONG", False), ("Incorrect", False)])
def test_a_judge_sees_question_answers_and_reply(reply: str, right: bool) -> None:
    judge = Judge(reply)
    assert is_judged_right(judge, "Where?", "There.", ["Here", "There"]) is right
    assert judge.asked == "Question: Where?\nAccepted answers: Here | There\nReply: There."


def test_each_part_of_answering_can_be_removed_and_is_put_back() -> None:
    question = "How many rooms does my flat have?"
    found = (Evidence("a", 1, 1, "Tea is good for everyone.", "user", datetime(2026, 5, 1, tzinfo=UTC), 0.9),)
    declined = extractive_answer(question, found).text
    replies = {name: reply[question] for name, reply in replies_without({question: found})}
    assert list(replies) == list(remove_parts())
    assert replies[WHOLE] == declined == extractive_answer(question, found).text
    assert declined.startswith(NOTHING)
    assert "Tea is good" in replies["without a threshold"]


def test_a_third_of_the_labelled_questions_have_no_answer() -> None:
    questions = [question for sample in samples(DATA) for question in sample.questions]
    assert len(questions) >= 200
    assert sum(not question.answers for question in questions) * 3 >= len(questions) - 8


def test_gvd_file_is_read_and_a_reply_is_right_if_it_quotes_each_part(tmp_path: Path) -> None:
    messages = [{"id": name, "date": "2023-05-01", "role": "user", "text": name} for name in "abc"]
    asked = {"question": "Which?", "evidence": [["a", "b"], ["c"]]}
    people = [{"person": name, "messages": messages, "questions": [asked]} for name in ("Ada", "Bo", "Cy")]
    file = tmp_path / "gvd.json"
    file.write_text(json.dumps(people), encoding="utf-8")
    unnamed, named = samples(file), samples(file, named=True)
    assert [sample.half for sample in unnamed] == ["tuning", "tuning", "checking"]
    assert [(sample.persona, sample.messages[0][1].get("name")) for sample in (unnamed[0], named[0])] == [
        ("", None),
        ("Ada", "Ada"),
    ]
    (question,) = unnamed[0].questions
    assert outcome_of(question, "So it was.", {"b", "c"}) is Outcome.RIGHT
    assert outcome_of(question, "So it was.", {"a", "b"}) is Outcome.WRONG


def test_logistic_regression_finds_the_feature_that_tells() -> None:
    drawn = np.random.default_rng(1)
    features, labels = drawn.normal(size=(400, 2)), np.zeros(400)
    labels[features[:, 0] > 0.5] = 1
    weights, bias = fit_logistic(features, labels, np.ones(400))
    assert weights[0] > 5 * abs(weights[1])
    assert bias < 0
