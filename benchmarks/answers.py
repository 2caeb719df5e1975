"""Share of right, wrong and declined answers of the chat without a model, on labelled questions of our own.

The data has LoCoMo's layout (benchmarks/data/answers.json). Each conversation is stored message by message, then every
question is asked by its first speaker in a conversation of its own. One half was used to calibrate, the other was not.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.loading import message_of, wait_for_vectors
from benchmarks.locomo import Turn, turns_of
from benchmarks.tables import markdown
from vault.chat.rules import NOTHING
from vault.providers.registry import embedder

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
    """A question; `answers`: texts of which a right reply contains one, `^yes` or `^no`; none: it has no answer."""

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
    """Raises BenchmarkError."""
    try:
        return [_sample(one) for one in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"cannot read {path} as labelled conversations: {error}") from error


def answers(target: Target, data: Path) -> dict[str, Any]:
    """Shares of each outcome on both halves, and the replies that were wrong. Raises BenchmarkError."""
    client = Client(target)
    outcomes: dict[str, list[tuple[Labelled, Outcome, str]]] = {}
    for sample in samples(data):
        for question, reply in _replies(client, sample):
            outcomes.setdefault(sample.half, []).append((question, outcome_of(question, reply), reply))
    together = [one for found in outcomes.values() for one in found]
    return {
        "data_sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
        "embedder": embedder().name,
        **{half: _shares(found) for half, found in outcomes.items()},
        "all": _shares(together),
        "wrong": [f"{one.text} → {reply}" for one, outcome, reply in together if outcome is Outcome.WRONG],
        "declined": [one.text for one, outcome, _ in together if outcome is Outcome.DECLINED and one.answers],
    }


def answers_table(figures: dict[str, Any]) -> str:
    columns = list(figures["all"])
    parts = [name for name, value in figures.items() if isinstance(value, dict)]
    return markdown(["part", *columns], [[part, *(figures[part][column] for column in columns)] for part in parts])


def outcome_of(question: Labelled, reply: str) -> Outcome:
    """declined: the reply says that nothing answers. Longer than MOST_CHARACTERS or MOST_QUOTES is never right."""
    if reply.startswith(NOTHING):
        return Outcome.DECLINED
    is_short = len(reply) <= MOST_CHARACTERS and len(_MARKER.findall(reply)) <= MOST_QUOTES
    return Outcome.RIGHT if is_short and any(_contains(reply, one) for one in question.answers) else Outcome.WRONG


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


def _replies(client: Client, sample: Sample) -> Iterator[tuple[Labelled, str]]:
    """Each question with the reply to it. What the asker said is stored without a name, as their own."""
    items = [
        {"messages": [_message(turn, sample.asker)], "infer": False, "session_id": f"{sample.id}-{turn.session}"}
        for turn in sample.turns
    ]
    stored = client.call("POST", "memories/bulk/", {"items": items})["results"]
    wait_for_vectors(client, stored[0]["memory"]["namespace"]["path"])
    for question in sample.questions:
        conversation = client.call("POST", "conversations/", {"model": "extractive"})["id"]
        turn = client.call("POST", f"conversations/{conversation}/turns/", {"content": question.text})
        yield question, turn["content"]
        client.call("DELETE", f"conversations/{conversation}/")
    for one in stored:
        client.call("DELETE", f"memories/{one['memory']['id']}/?purge=true")


def _message(turn: Turn, asker: str) -> dict[str, Any]:
    message = message_of(turn)
    return {name: value for name, value in message.items() if name != "name" or turn.speaker != asker}


def _shares(found: Sequence[tuple[Labelled, Outcome, str]]) -> dict[str, Any]:
    """right_answerable: of the questions that have an answer; the others: of all."""
    counts = Counter(outcome for _, outcome, _ in found)
    answerable = [outcome for question, outcome, _ in found if question.answers]
    return {
        "questions": len(found),
        "unanswerable": len(found) - len(answerable),
        "right_answerable": round(answerable.count(Outcome.RIGHT) / len(answerable), 3),
        **{outcome.value: round(counts[outcome] / len(found), 3) for outcome in Outcome},
    }
