"""Measures the shares of right, wrong and declined answers of the chat, on our own labelled questions or on GVD's.

Ours have LoCoMo's layout (benchmarks/data/answers.json). Each conversation is stored message by message, then its
first speaker asks every question in a new conversation. One half was used for calibration, the other was not. Without a
model, the method also runs without one part at a time. With a model, replies also get token F1, BLEU-1, the judgement
of a judge model if one is named, tokens and calls. GVD's questions have labelled messages instead of answers: a reply
is right if it quotes a message of each part.
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.answer_parts import replies_without, retrieve_passages
from benchmarks.bulk_load import message_of, wait_for_vectors
from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.gvd import TUNING, Dialogue, dialogues, is_gvd
from benchmarks.locomo import Conversation, Turn, conversations, turns_of
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
FIRST = 3  # results of a search that should have been quoted
_YES = re.compile(r"^(?:yes\b|是)", re.IGNORECASE)
_NO = re.compile(r"^(?:no\b|不)", re.IGNORECASE)
_MARKER = re.compile(r"\[\d+\]")


class Outcome(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    DECLINED = "declined"


@dataclass(frozen=True)
class Labelled:
    """A question. answers: a right reply contains one of these texts, or matches `^yes` or `^no`; evidence: or it
    quotes a message of each part; both empty: it has no answer."""

    text: str
    answers: tuple[str, ...] = ()
    evidence: tuple[frozenset[str], ...] = ()

    @property
    def is_answerable(self) -> bool:
        return bool(self.answers or self.evidence)

    def is_held_by(self, messages: Collection[str]) -> bool:
        """Return whether these messages hold each part of the answer."""
        return bool(self.evidence) and all(part.intersection(messages) for part in self.evidence)


@dataclass(frozen=True)
class Sample:
    """A conversation: its messages as REST takes them, each with its session, and questions about it.

    persona: the name of the person in the messages; empty: the person's messages have no name.
    """

    id: str
    half: str
    messages: tuple[tuple[str, dict[str, Any]], ...]
    questions: tuple[Labelled, ...]
    persona: str = ""


def samples(path: Path, *, named: bool = False) -> list[Sample]:
    """Read the labelled conversations of a file: ours, GVD's or LoCoMo's. named: GVD's people have a persona and sign
    their messages. Raises BenchmarkError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(data, list) and data and "half" not in data[0] and "conversation" in data[0]:
            return [_locomo_sample(number, found) for number, found in enumerate(conversations(path))]
        if is_gvd(data):
            return [_gvd_sample(number, found, named=named) for number, found in enumerate(dialogues(path))]
        return [_sample(sample) for sample in data]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"cannot read {path} as labelled conversations: {error}") from error


@dataclass(frozen=True)
class Answerer:
    """The way to answer. model: a model name of the server, or EXTRACTIVE; judge: a model that judges replies, or
    None."""

    model: str = EXTRACTIVE
    judge: CompletingLlm | None = None
    most: int = 0  # questions of each conversation; 0: all
    named: bool = False


@dataclass(frozen=True)
class Replied:
    """A reply as the server stored it. calls: to language models for this answer; judged: None without a judge."""

    question: Labelled
    text: str = field(repr=False)
    tokens: int = 0
    calls: int = 0
    judged: bool | None = None
    quoted: frozenset[str] = frozenset()  # ids of the messages that it cites
    first: tuple[str, ...] = ()  # ids of the messages that a search ranks first

    @property
    def is_missed(self) -> bool:
        """Return whether the answer was among the first results of a search, and not in the reply."""
        return self.question.is_held_by(self.first) and self.outcome is not Outcome.RIGHT

    @property
    def outcome(self) -> Outcome:
        return outcome_of(self.question, self.text, self.quoted, by_model=self.calls > 0)


def answers(target: Target, data: Path, answerer: Answerer) -> dict[str, Any]:
    """Return the shares of each outcome on both halves, and the wrong replies. Raises BenchmarkError."""
    client = Client(target)
    replied: dict[str, list[Replied]] = {}
    without: dict[str, list[Replied]] = {}
    for sample in samples(data, named=answerer.named):
        questions = sample.questions[: answerer.most or None]
        with store_conversation(client, sample) as stored:
            replied.setdefault(sample.half, []).extend(_replies(client, questions, answerer, stored))
            if answerer.model == EXTRACTIVE and any(question.answers for question in questions):
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
            reply.question.text
            for reply in together
            if reply.outcome is Outcome.DECLINED and reply.question.is_answerable
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


def outcome_of(question: Labelled, reply: str, quoted: Collection[str] = (), *, by_model: bool = False) -> Outcome:
    """Return the outcome of a reply. DECLINED: it says that there is no answer. A reply longer than MOST_CHARACTERS or
    MOST_QUOTES is never RIGHT."""
    is_named = any(_contains(reply, answer) for answer in question.answers) or question.is_held_by(quoted)
    if reply.startswith(NOTHING) or (by_model and not is_named and KNOWS_NOTHING.search(reply)):
        return Outcome.DECLINED
    is_short = len(reply) <= MOST_CHARACTERS and len(_MARKER.findall(reply)) <= MOST_QUOTES
    return Outcome.RIGHT if is_short and is_named else Outcome.WRONG


def _contains(reply: str, answer: str) -> bool:
    if answer in {"^yes", "^no"}:
        return (_YES if answer == "^yes" else _NO).match(reply) is not None
    return answer.casefold() in reply.casefold()


def _sample(data: dict[str, Any]) -> Sample:
    """Return a conversation of ours. The asker's messages have no name, as a member's own messages do."""
    turns = tuple(turns_of(data["conversation"]))
    return Sample(
        id=data["sample_id"],
        half=data["half"],
        messages=tuple((str(turn.session), _message(turn, data["asker"])) for turn in turns),
        questions=tuple(Labelled(pair["question"], tuple(pair["answers"])) for pair in data["qa"]),
    )


def _locomo_sample(number: int, found: Conversation) -> Sample:
    """Return a conversation of LoCoMo, of which the questions are about both speakers."""
    return Sample(
        id=found.id,
        half="tuning" if number < TUNING else "checking",
        messages=tuple((str(turn.session), message_of(turn)) for turn in found.turns),
        questions=tuple(Labelled(asked.text, evidence=(asked.evidence,)) for asked in found.questions),
    )


def _gvd_sample(number: int, found: Dialogue, *, named: bool) -> Sample:
    name = {"name": found.person} if named else {}
    return Sample(
        id=found.person,
        half="tuning" if number < TUNING else "checking",
        messages=tuple((message["date"], _gvd_message(message, name)) for message in found.messages),
        questions=tuple(Labelled(text, evidence=parts) for text, parts in found.questions),
        persona=found.person if named else "",
    )


def _gvd_message(message: dict[str, str], name: dict[str, str]) -> dict[str, Any]:
    return {
        "role": message["role"],
        "content": message["text"],
        "timestamp": f"{message['date']}T12:00:00Z",
        "message_id": message["id"],
        **(name if message["role"] == "user" else {}),
    }


@dataclass(frozen=True)
class Stored:
    """A stored conversation. messages: memory → message; persona: of the asker, if any."""

    messages: dict[str, str]
    persona: dict[str, str]

    def messages_of(self, memories: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.messages[memory] for memory in memories if memory in self.messages)


@contextmanager
def store_conversation(client: Client, sample: Sample) -> Iterator[Stored]:
    """Store the messages of a conversation, wait until they are searchable, and erase them after the block."""
    persona = {"persona": client.call("POST", "personas/", {"name": sample.persona})["id"]} if sample.persona else {}
    items = [
        {"messages": [message], "infer": False, "session_id": f"{sample.id}-{session}", **persona}
        for session, message in sample.messages
    ]
    stored = client.call("POST", "memories/bulk/", {"items": items})["results"]
    wait_for_vectors(client, stored[0]["memory"]["namespace"]["path"])
    ids = [result["memory"]["id"] for result in stored]
    yield Stored(dict(zip(ids, (message["message_id"] for _, message in sample.messages), strict=True)), persona)
    for memory in ids:
        client.call("DELETE", f"memories/{memory}/?purge=true")
    if persona:
        client.call("DELETE", f"personas/{persona['persona']}/")


def _replies(client: Client, questions: Sequence[Labelled], answerer: Answerer, stored: Stored) -> Iterator[Replied]:
    """Yield the reply to each question, asked in a new conversation."""
    for question in questions:
        conversation = client.call("POST", "conversations/", {"model": answerer.model, **stored.persona})["id"]
        turn = client.call("POST", f"conversations/{conversation}/turns/", {"content": question.text})
        client.call("DELETE", f"conversations/{conversation}/")
        calls = len(turn["failed_models"]) + (turn["model"] != EXTRACTIVE)
        judged = None
        first: tuple[str, ...] = ()
        if question.evidence:
            found = client.call("POST", "memories/search/", {"query": question.text, "top_k": FIRST})["results"]
            first = stored.messages_of(hit["id"] for hit in found)
        if answerer.judge and question.answers:
            judged = is_judged_right(answerer.judge, question.text, turn["content"], question.answers)
        quoted = frozenset(stored.messages_of(found.get("memory_id", "") for found in turn["citations"]))
        yield Replied(question, turn["content"], sum(turn["usage"].values()), calls, judged, quoted, first)


def _without_parts(client: Client, questions: Sequence[Labelled]) -> Iterator[tuple[str, list[Replied]]]:
    found = {question.text: retrieve_passages(client, question.text) for question in questions}
    for name, replies in replies_without(found):
        yield name, [Replied(question, replies[question.text]) for question in questions]


def _message(turn: Turn, asker: str) -> dict[str, Any]:
    message = message_of(turn)
    return {name: value for name, value in message.items() if name != "name" or turn.speaker != asker}


def _shares(found: Sequence[Replied]) -> dict[str, Any]:
    """Return figures of the replies. right_answerable, missed, f1, bleu1, judged: of questions with an answer; other
    shares: of all. missed: the answer was among the first results of a search.

    tokens, calls: of language models, mean per answer.
    """
    counts = Counter(reply.outcome for reply in found)
    answerable = [reply for reply in found if reply.question.is_answerable]
    shares: dict[str, Any] = {
        "questions": len(found),
        "unanswerable": len(found) - len(answerable),
        "right_answerable": _mean([reply.outcome is Outcome.RIGHT for reply in answerable]),
        **{outcome.value: round(counts[outcome] / len(found), 3) for outcome in Outcome},
        **({"missed": _mean([reply.is_missed for reply in answerable])} if any(reply.first for reply in found) else {}),
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
