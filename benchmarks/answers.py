"""Measures the shares of right, wrong and declined answers of the chat, on our own labelled questions.

The data has LoCoMo's layout (benchmarks/data/answers.json). Each conversation is stored message by message, then its
first speaker asks every question in a new conversation. One half was used for calibration, the other was not. Without a
model, the method also runs without one part at a time. With a model, replies also get token F1, BLEU-1, the judgement
of a judge model if one is named, tokens and calls.
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.answer_parts import replies_without, retrieve_passages
from benchmarks.bulk_load import message_of, wait_for_vectors
from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.locomo import Turn, turns_of
from benchmarks.tables import markdown
from benchmarks.text_scores import JUDGE, bleu1, is_judged_right, token_f1
from vault.chat.rules import KNOWS_NOTHING, NOTHING
from vault.providers.openai_endpoint import Endpoint
from vault.providers.openai_llm import OpenAiLlm
from vault.providers.ports import CompletingLlm
from vault.providers.registry import embedder
from vault.vocabulary import EXTRACTIVE

DATA = Path(__file__).parent / "data" / "answers.json"
MOST_QUOTES, MOST_CHARACTERS = 3, 400
_YES = re.compile(r"^(?:yes\b|是)", re.IGNORECASE)
_NO = re.compile(r"^(?:no\b|不)", re.IGNORECASE)
_MARKER = re.compile(r"\[\d+\]")


class Outcome(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    DECLINED = "declined"


@dataclass(frozen=True)
class Labelled:
    """A question. answers: a right reply contains one of these texts, or matches `^yes` or `^no`; empty: it has no
    answer."""

    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    id: str
    half: str
    asker: str
    turns: tuple[Turn, ...]
    questions: tuple[Labelled, ...]


def samples(path: Path) -> list[Sample]:
    """Read the labelled conversations of a file. Raises BenchmarkError."""
    try:
        return [_sample(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"cannot read {path} as labelled conversations: {error}") from error


@dataclass(frozen=True)
class Answerer:
    """The way to answer. model: a model name of the server, or EXTRACTIVE; judge: a model that judges replies, or
    None."""

    model: str = EXTRACTIVE
    judge: CompletingLlm | None = None
    most: int = 0  # questions of each conversation; 0: all


@dataclass(frozen=True)
class Replied:
    """A reply as the server stored it. calls: to language models for this answer; judged: None without a judge."""

    question: Labelled
    text: str = field(repr=False)
    tokens: int = 0
    calls: int = 0
    judged: bool | None = None

    @property
    def outcome(self) -> Outcome:
        return outcome_of(self.question, self.text, by_model=self.calls > 0)


def answers(target: Target, data: Path, answerer: Answerer) -> dict[str, Any]:
    """Return the shares of each outcome on both halves, and the wrong replies. Raises BenchmarkError."""
    client = Client(target)
    replied: dict[str, list[Replied]] = {}
    without: dict[str, list[Replied]] = {}
    for sample in samples(data):
        questions = sample.questions[: answerer.most or None]
        with _store_conversation(client, sample):
            replied.setdefault(sample.half, []).extend(_replies(client, questions, answerer))
            if answerer.model == EXTRACTIVE:
                for name, found in _without_parts(client, questions):
                    without.setdefault(name, []).extend(found)
    together = [reply for found in replied.values() for reply in found]
    return {
        "data_sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
        "embedder": embedder().name,
        "model": answerer.model,
        **({"judge": answerer.judge.name, "judge_prompt": JUDGE} if answerer.judge else {}),
        "shares": {**{half: _shares(found) for half, found in replied.items()}, "all": _shares(together)},
        "parts": {name: _shares(found) for name, found in without.items()},
        "wrong": [f"{reply.question.text} → {reply.text}" for reply in together if reply.outcome is Outcome.WRONG],
        "declined": [
            reply.question.text for reply in together if reply.outcome is Outcome.DECLINED and reply.question.answers
        ],
    }


def answers_table(figures: dict[str, Any]) -> str:
    columns = list(figures["shares"]["all"])
    rows = [[part, *(found[column] for column in columns)] for part, found in figures["shares"].items()]
    tables = [markdown(["part", *columns], rows)]
    if figures["parts"]:
        names = ["right_answerable", "wrong", "declined"]
        rows = [[part, *(found[name] for name in names)] for part, found in figures["parts"].items()]
        tables.append(markdown(["method", *names], rows))
    return "\n\n".join(tables)


def judge_of(url: str, model: str) -> CompletingLlm:
    """Return the judge model. Its key is JUDGE_API_KEY of the environment."""
    return OpenAiLlm(Endpoint(url=url, key=os.environ.get("JUDGE_API_KEY", ""), model=model, is_of_operator=True))


def outcome_of(question: Labelled, reply: str, *, by_model: bool = False) -> Outcome:
    """Return the outcome of a reply. DECLINED: it says that there is no answer. A reply longer than MOST_CHARACTERS or
    MOST_QUOTES is never RIGHT."""
    is_named = any(_contains(reply, answer) for answer in question.answers)
    if reply.startswith(NOTHING) or (by_model and not is_named and KNOWS_NOTHING.search(reply)):
        return Outcome.DECLINED
    is_short = len(reply) <= MOST_CHARACTERS and len(_MARKER.findall(reply)) <= MOST_QUOTES
    return Outcome.RIGHT if is_short and is_named else Outcome.WRONG


def _contains(reply: str, answer: str) -> bool:
    if answer in {"^yes", "^no"}:
        return (_YES if answer == "^yes" else _NO).match(reply) is not None
    return answer.casefold() in reply.casefold()


def _sample(data: dict[str, Any]) -> Sample:
    return Sample(
        id=data["sample_id"],
        half=data["half"],
        asker=data["asker"],
        turns=tuple(turns_of(data["conversation"])),
        questions=tuple(Labelled(pair["question"], tuple(pair["answers"])) for pair in data["qa"]),
    )


@contextmanager
def _store_conversation(client: Client, sample: Sample) -> Iterator[None]:
    """Store the messages of a conversation, wait until they are searchable, and erase them after the block.

    The asker's messages have no speaker name, as a member's own messages do.
    """
    items = [
        {"messages": [_message(turn, sample.asker)], "infer": False, "session_id": f"{sample.id}-{turn.session}"}
        for turn in sample.turns
    ]
    stored = client.call("POST", "memories/bulk/", {"items": items})["results"]
    wait_for_vectors(client, stored[0]["memory"]["namespace"]["path"])
    yield
    for result in stored:
        client.call("DELETE", f"memories/{result['memory']['id']}/?purge=true")


def _replies(client: Client, questions: Sequence[Labelled], answerer: Answerer) -> Iterator[Replied]:
    """Yield the reply to each question, asked in a new conversation."""
    for question in questions:
        conversation = client.call("POST", "conversations/", {"model": answerer.model})["id"]
        turn = client.call("POST", f"conversations/{conversation}/turns/", {"content": question.text})
        client.call("DELETE", f"conversations/{conversation}/")
        calls = len(turn["failed_models"]) + (turn["model"] != EXTRACTIVE)
        judged = None
        if answerer.judge and question.answers:
            judged = is_judged_right(answerer.judge, question.text, turn["content"], question.answers)
        yield Replied(question, turn["content"], sum(turn["usage"].values()), calls, judged)


def _without_parts(client: Client, questions: Sequence[Labelled]) -> Iterator[tuple[str, list[Replied]]]:
    found = {question.text: retrieve_passages(client, question.text) for question in questions}
    for name, replies in replies_without(found):
        yield name, [Replied(question, replies[question.text]) for question in questions]


def _message(turn: Turn, asker: str) -> dict[str, Any]:
    message = message_of(turn)
    return {name: value for name, value in message.items() if name != "name" or turn.speaker != asker}


def _shares(found: Sequence[Replied]) -> dict[str, Any]:
    """Return figures of the replies. right_answerable, f1, bleu1, judged: of questions with an answer; other shares: of
    all.

    tokens, calls: of language models, mean per answer.
    """
    counts = Counter(reply.outcome for reply in found)
    answerable = [reply for reply in found if reply.question.answers]
    shares: dict[str, Any] = {
        "questions": len(found),
        "unanswerable": len(found) - len(answerable),
        "right_answerable": _mean([reply.outcome is Outcome.RIGHT for reply in answerable]),
        **{outcome.value: round(counts[outcome] / len(found), 3) for outcome in Outcome},
    }
    if not any(reply.calls for reply in found):
        return shares
    worded = [(reply, [text for text in reply.question.answers if not text.startswith("^")]) for reply in answerable]
    told = [(reply.text, texts) for reply, texts in worded if texts]
    shares["f1"] = _mean([token_f1(reply, texts) for reply, texts in told])
    shares["bleu1"] = _mean([bleu1(reply, texts) for reply, texts in told])
    judged = [reply.judged for reply in answerable if reply.judged is not None]
    return shares | {
        **({"judged": _mean(judged)} if judged else {}),
        "tokens": round(_mean([reply.tokens for reply in found])),
        "calls": _mean([reply.calls for reply in found]),
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 3) if values else 0.0
