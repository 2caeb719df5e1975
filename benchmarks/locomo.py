"""Reads LoCoMo (Maharana et al., 2024) in its published layout. The data is not part of this project."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.client import BenchmarkError

EVIDENCE = re.compile(r"D\d+:\d+")
UNANSWERABLE = 5  # the category whose questions have no answer in the conversation


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation. id: D<session>:<turn>, as in the evidence."""

    id: str
    session: int
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the turns that answer it, at least one."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def conversations(path: Path) -> list[Conversation]:
    """Return all conversations of a file. Raises BenchmarkError."""
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"cannot read {path} as LoCoMo: {error}") from error
    try:
        found = [_conversation(sample) for sample in samples]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        layout = "a list of conversations, each with sample_id, conversation and qa"
        raise BenchmarkError(f"{path} is not in LoCoMo's layout, {layout}") from error
    if not found or not all(conversation.questions for conversation in found):
        raise BenchmarkError(f"{path} has no conversation, or one without a question that its turns answer")
    return found


def recall(found: list[str], evidence: frozenset[str]) -> float:
    """Return the share of the evidence among `found`."""
    return len(evidence.intersection(found)) / len(evidence)


def _conversation(sample: dict[str, Any]) -> Conversation:
    turns = tuple(turns_of(sample["conversation"]))
    known = {turn.id for turn in turns}
    return Conversation(sample["sample_id"], turns, tuple(_questions(sample["qa"], known)))


def turns_of(conversation: dict[str, Any]) -> Iterator[Turn]:
    """Yield the turns of a `conversation` in LoCoMo's layout, in order. Raises KeyError; ValueError."""
    numbers = sorted(int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        began = _moment(conversation[f"session_{number}_date_time"])
        for index, turn in enumerate(conversation[f"session_{number}"]):
            yield Turn(turn["dia_id"], number, turn["speaker"], turn["text"], began + timedelta(seconds=index))


def _questions(pairs: list[dict[str, Any]], known: set[str]) -> Iterator[Question]:
    for pair in pairs:
        evidence = frozenset(EVIDENCE.findall(" ".join(pair["evidence"]))) & known
        if pair["category"] != UNANSWERABLE and evidence:
            yield Question(pair["question"], pair["category"], evidence)


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
