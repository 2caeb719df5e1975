"""Measures what is kept of a life that is told over four chats: changes, dates, and the answers to questions of each
kind.

The messages are stored one by one with their times, as a client does; then every question is asked in a new
conversation. Writers who had not seen the product wrote the lives (docs/benchmarks.md); `c` is kept apart from tuning.
"""

import json
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.answers import Labelled, Outcome, outcome_of
from benchmarks.bulk_load import wait_for_vectors
from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.tables import markdown
from vault.providers.registry import embedder
from vault.vocabulary import EXTRACTIVE

PLACE = Path(__file__).parent / "data" / "lives"
LONGEST_WAIT = 60.0  # seconds for the worker


@dataclass(frozen=True)
class Asked:
    """A question about a life. kind: fact, newest (of two statements), join (of two), list, time or unanswerable.

    every: a right reply contains all of these texts, for a list.
    """

    labelled: Labelled
    kind: str
    every: tuple[str, ...] = ()


@dataclass(frozen=True)
class Life:
    """Messages in their order, each with its chat; changes: (newer message, older message); dates: by message, the
    local day on which what it tells of begins; stable: the messages of each fact that lasts; passing: those that tell
    of nothing that does."""

    name: str
    messages: tuple[tuple[str, dict[str, Any]], ...] = field(repr=False)
    changes: frozenset[tuple[str, str]]
    dates: dict[str, str]
    stable: tuple[frozenset[str], ...]
    passing: frozenset[str]
    questions: tuple[Asked, ...]


@dataclass(frozen=True)
class Memory:
    """A stored memory: the message that it comes from, and what became of it."""

    id: str
    message: str
    event_time: str | None
    ended_by: str | None


def read_life(path: Path) -> Life:
    """Return the life of a file. Raises BenchmarkError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Life(
            name=path.stem,
            messages=tuple(
                (f"{path.stem}-{number}", _message(chat, message))
                for number, chat in enumerate(data["chats"])
                for message in chat["messages"]
            ),
            changes=frozenset((change["newer"], change["older"]) for change in data["changes"]),
            dates={date["message"]: date["happens"].partition("/")[0] for date in data["dates"]},
            stable=tuple(frozenset(fact["messages"]) for fact in data["stable"]),
            passing=frozenset(data["not_stable"]),
            questions=tuple(map(_question, data["questions"])),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"cannot read {path} as a life: {error}") from error


def lives(target: Target, paths: Sequence[Path]) -> dict[str, Any]:
    """Return figures of each life. Raises BenchmarkError."""
    client = Client(target)
    found = {path.stem: _measure(client, read_life(path)) for path in paths or sorted(PLACE.glob("*.json"))}
    return {"embedder": embedder().name, "lives": found}


def lives_table(figures: dict[str, Any]) -> str:
    rows = [[name, *found["shares"].values()] for name, found in figures["lives"].items()]
    return markdown(["life", *next(iter(figures["lives"].values()))["shares"]], rows)


def _measure(client: Client, life: Life) -> dict[str, Any]:
    with _store(client, life) as (memories, persona):
        outcomes = [(asked, *_ask(client, asked, persona)) for asked in life.questions]
        entries = [_message_of(memories, memory) for memory in _list_entries(client, persona)]
    ended = {(_message_of(memories, memory.ended_by), memory.message) for memory in memories if memory.ended_by}
    wrong = ended - life.changes
    days = {(memory.message, (memory.event_time or "")[:10]) for memory in memories}
    right_days = [
        message for message, day in life.dates.items() if any(at.startswith(day) for of, at in days if of == message)
    ]
    shares = {
        "superseded": _share(len(ended & life.changes), len(life.changes)),
        "wrongly": _share(len(wrong), len(life.messages)),
        "dates": _share(len(right_days), len(life.dates)),
        "stable": _share(sum(not fact.isdisjoint(entries) for fact in life.stable), len(life.stable)),
        "passing": _share(sum(message in life.passing for message in entries), len(entries)),
        **_shares_by_kind(outcomes),
    }
    return {
        "shares": shares,
        "wrongly superseded": sorted(map(list, wrong)),
        "dates missed": sorted(set(life.dates) - set(right_days)),
        "not right": [
            f"{asked.kind}: {asked.labelled.text} → {reply}"
            for asked, outcome, reply in outcomes
            if not _is_good(asked, outcome)
        ],
    }


def _shares_by_kind(outcomes: Sequence[tuple[Asked, Outcome, str]]) -> dict[str, float]:
    kinds = dict.fromkeys(asked.kind for asked, _, _ in outcomes)
    answerable = [(asked, outcome) for asked, outcome, _ in outcomes if asked.labelled.is_answerable]
    counts = Counter(outcome for _, outcome, _ in outcomes)
    return {
        "right": _share(sum(outcome is Outcome.RIGHT for _, outcome in answerable), len(answerable)),
        "wrong": _share(counts[Outcome.WRONG], len(outcomes)),
        **{
            kind: _share(
                sum(_is_good(asked, outcome) for asked, outcome, _ in outcomes if asked.kind == kind),
                sum(asked.kind == kind for asked, _, _ in outcomes),
            )
            for kind in kinds
        },
    }


def _is_good(asked: Asked, outcome: Outcome) -> bool:
    return outcome is (Outcome.RIGHT if asked.labelled.is_answerable else Outcome.DECLINED)


@contextmanager
def _store(client: Client, life: Life) -> Iterator[tuple[list[Memory], str]]:
    """Store a life message by message, wait for vectors after each, and erase it after the block.

    Yields its memories and the persona.
    """
    persona = client.call("POST", "personas/", {"name": life.name})["id"]
    messages: dict[str, str] = {}
    place = f"/lives/{life.name}"
    for session, message in life.messages:
        body = {
            "messages": [message], "session_id": session, "infer": True, "namespace": place, "persona": persona,
        }  # fmt: skip
        reply = client.call("POST", "memories/", body)
        for memory in reply["results"]:
            messages[memory["id"]] = message["message_id"]
        wait_for_vectors(client, place)
    found = [client.call("GET", f"memories/{memory}/") for memory in messages]
    memories = [Memory(row["id"], messages[row["id"]], row["event_time"], row["superseded_by"]) for row in found]
    yield memories, persona
    for memory in reversed(messages):  # a message goes with its statements
        client.call("DELETE", f"memories/{memory}/?purge=true")
    client.call("DELETE", f"personas/{persona}/")


def _ask(client: Client, asked: Asked, persona: str) -> tuple[Outcome, str]:
    conversation = client.call("POST", "conversations/", {"model": EXTRACTIVE, "persona": persona})["id"]
    turn = client.call("POST", f"conversations/{conversation}/turns/", {"content": asked.labelled.text})
    client.call("DELETE", f"conversations/{conversation}/")
    outcome = outcome_of(asked.labelled, turn["content"])
    if outcome is Outcome.RIGHT and not _contains_all(turn["content"], asked.every):
        outcome = Outcome.WRONG
    return outcome, turn["content"]


def _list_entries(client: Client, persona: str) -> list[str]:
    """Return the memories of a persona's profile and knowledge, once what its ended chats told is distilled."""
    deadline = time.monotonic() + LONGEST_WAIT
    while any(
        row["unpromoted"] for row in client.call("GET", f"personas/{persona}/segments/?page_size=100")["results"]
    ):
        if time.monotonic() > deadline:
            raise BenchmarkError("the segments of a persona were not distilled")
        time.sleep(0.2)
    found = client.call("GET", f"personas/{persona}/profile/")
    return [row["memory_id"] for row in (*found["profile"], *found["knowledge"]) if row["memory_id"]]


def _message_of(memories: Collection[Memory], memory_id: str) -> str:
    return next((memory.message for memory in memories if memory.id == memory_id), "")


def _contains_all(reply: str, texts: Collection[str]) -> bool:
    return all(text.casefold() in reply.casefold() for text in texts)


def _message(chat: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": message["text"], "timestamp": chat["begins"], "message_id": message["id"]}


def _question(data: dict[str, Any]) -> Asked:
    answers = data["answers"]
    every = tuple(answers["all"]) if isinstance(answers, dict) else ()
    return Asked(Labelled(data["question"], every or tuple(answers)), data["kind"], every)


def _share(count: int, whole: int) -> float:
    return round(count / whole, 3) if whole else 0.0
