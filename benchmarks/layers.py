"""Measures the layers: the time of a turn and of a context by length of history, and the gain by each part."""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import UUID, uuid4

from django.db import connection
from django.db.models.functions import Now

from benchmarks.client import Target
from benchmarks.locomo import Conversation, conversations, recall
from benchmarks.report import timing
from benchmarks.synthetic import conversation
from benchmarks.tables import markdown
from benchmarks.tenants import await_jobs, owner_of
from governance.actor import Actor, system_actor
from governance.database import acting
from governance.models import OutboxEvent
from governance.outbox.routes import Payload, Write
from governance.vocabulary import Permission, Topic
from vault.content.drafts import CubeDraft
from vault.cubes.services import AddedCube, cubes_add
from vault.cubes.writer.builder import texts_index
from vault.layers import search as layer_search
from vault.layers.conversation_import import conversations_import
from vault.layers.distillation import segments_distil
from vault.layers.formats import locomo_parse
from vault.layers.page_texts import open_words
from vault.layers.placement import pages_place
from vault.layers.search import context_assemble, layers_search
from vault.layers.services import PageDraft, StreamRef, pages_append, persona_of_member
from vault.models import Cube, CubeSource
from vault.reader.services import Message, messages_read
from vault.retrieval.queries import SearchQuery
from vault.vocabulary import MessageRole

SEED = 20_260_104
WINDOW = 50  # turns timed one by one at each size
PART = 100  # turns stored at once before them
QUESTIONS = 20
SESSION = "benchmark"
NOTHING = " AND false"  # makes a statement of a part of the layers find nothing


@dataclass
class History:
    """A persona with a history of a given length. texts: two per turn; done: turns stored."""

    actor: Actor
    persona_id: UUID
    texts: Sequence[str] = field(repr=False)
    done: int = 0

    def next(self, count: int) -> Sequence[str]:
        texts = self.texts[2 * self.done : 2 * (self.done + count)]
        self.done += count
        return texts


@dataclass(frozen=True)
class Taken:
    """The cost of one call."""

    milliseconds: float
    statements: int

    def __add__(self, other: "Taken") -> "Taken":
        return Taken(self.milliseconds + other.milliseconds, self.statements + other.statements)

    def __sub__(self, other: "Taken") -> "Taken":
        return Taken(self.milliseconds - other.milliseconds, self.statements - other.statements)


def layers(target: Target, sizes: Sequence[int], data: Path | None = None) -> dict[str, Any]:
    """Return the figures of one run, in new tenants, which are kept. data: a LoCoMo file for the gain by parts."""
    histories = {size: _history(size) for size in sorted(sizes)}
    figures: dict[str, Any] = {"seed": SEED, "times": _times(histories)}
    if data is not None:
        figures["parts"] = _parts(conversations(data)[-1], data)
    return figures


def layers_table(figures: dict[str, Any]) -> str:
    headers = ["history", "what", "p50 ms", "p95 ms", "mean ms", "of the shortest", "statements"]
    rows = [
        [size, what, figure["p50"], figure["p95"], figure["mean"], figure["of the shortest"], figure["statements"]]
        for size, parts in figures["times"].items()
        for what, figure in parts.items()
    ]
    tables = [markdown(headers, rows)]
    if "parts" in figures:
        found = figures["parts"]["contexts"].items()
        named = [[name, context["recall"], context["tokens"]] for name, context in found]
        tables.append(markdown(["context", "evidence in it", "tokens"], named))
    return "\n\n".join(tables)


def _history(size: int) -> History:
    """Return the history of a new tenant, filled to WINDOW turns below the size, with all vectors."""
    actor = owner_of(f"bench-layers-{size}-{uuid4().hex[:8]}").actor
    with acting(actor):
        persona_id = persona_of_member(actor)
    assert persona_id is not None
    found = History(actor, persona_id, [turn.text for turn in conversation(2 * size, SEED)])
    while found.done < size - WINDOW:
        _turns(found, min(PART, size - WINDOW - found.done))
    await_jobs(actor)
    return found


def _times(histories: dict[int, History]) -> dict[str, Any]:
    """Measure turns and contexts of all histories in turn, so that each has the same load on the machine.

    Returns by size and part: milliseconds, the ratio of the median to that of the shortest history (None if that is 0),
    and statements per call.
    """
    taken: dict[int, dict[str, list[Taken]]] = {size: {} for size in histories}
    for _ in range(WINDOW):
        for size, history in histories.items():
            for part, took in _turns(history, 1).items():
                taken[size].setdefault(part, []).append(took)
    for history in histories.values():
        await_jobs(history.actor)
    for number in range(QUESTIONS):
        for size, history in histories.items():
            search = SearchQuery(query=history.texts[number], is_use=False)
            for part, work in (
                ("layers of a context", partial(layers_search, search=replace(search, top_k=100))),
                ("context", partial(context_assemble, search=search)),
            ):
                taken[size].setdefault(part, []).append(_measure(partial(work, actor=history.actor)))
    shortest = taken[min(histories)]
    return {
        f"{size} turns": {part: _figures(some, shortest[part]) for part, some in parts.items()}
        for size, parts in taken.items()
    }


def _figures(some: Sequence["Taken"], shortest: Sequence["Taken"]) -> dict[str, Any]:
    times = [sample.milliseconds for sample in some]
    least = statistics.median(sample.milliseconds for sample in shortest)
    return {
        **asdict(timing(times)),
        "mean": round(statistics.mean(times), 2),
        "of the shortest": round(statistics.median(times) / least, 2) if least else None,
        "statements": round(statistics.mean(sample.statements for sample in some), 1),
    }


def _parts(said: Conversation, data: Path) -> dict[str, Any]:
    """Return the share of the evidence in the context of each question of a conversation, with and without each
    part."""
    actor = owner_of(f"bench-parts-{uuid4().hex[:8]}").actor
    sample = [
        conversation
        for conversation in json.loads(data.read_text(encoding="utf-8"))
        if conversation["sample_id"] == said.id
    ]
    conversations_import(actor=actor, imported=locomo_parse(data.name, sample), persona=None, namespace=None)
    await_jobs(actor)
    turns = _turn_of_memory(actor)
    contexts = {}
    for name, removed in removals().items():
        shares, tokens = [], []
        with removed:
            for question in said.questions:
                found = context_assemble(actor=actor, search=SearchQuery(query=question.text, is_use=False))
                ids = [turns[item.hit.view.cube.id] for item in found.items if item.hit.view.cube.id in turns]
                shares.append(recall(ids, question.evidence))
                tokens.append(found.tokens)
        contexts[name] = {"recall": round(statistics.mean(shares), 4), "tokens": round(statistics.mean(tokens))}
    return {"conversation": said.id, "questions": len(said.questions), "contexts": contexts}


def removals() -> dict[str, AbstractContextManager[Any]]:
    """Return patches by name: contexts with all parts, then without each part."""
    return {
        "all parts": nullcontext(),
        "without the queue": mock.patch.object(layer_search, "QUEUE", layer_search.QUEUE + NOTHING),
        "without segments": mock.patch.object(layer_search, "select_segments", return_value=[]),
        "without profile and knowledge": mock.patch.object(layer_search, "ENTRIES", layer_search.ENTRIES + NOTHING),
        "without memories beside the layers": mock.patch.object(layer_search, "memories_search", _skip_search),
        "memories beside the layers alone": mock.patch.object(layer_search, "_find_hits", return_value=[]),
    }


def _skip_search(*, actor: Actor, search: SearchQuery, within: Callable[[Sequence[Any]], None]) -> list[Any]:
    with acting(actor):
        within([])
    return []


def _turn_of_memory(actor: Actor) -> dict[UUID, str]:
    """Return memory id → id of the turn that it is, or was derived from."""
    with acting(actor):
        opened = open_words(list(Cube.objects.values_list("id", flat=True)))
        derived = dict(CubeSource.objects.values_list("cube_id", "source_id"))
    said = {cube_id: words.message_id for cube_id, (_, words) in opened.items() if words.message_id}
    return said | {cube_id: said[source] for cube_id, source in derived.items() if source in said}


def _turns(history: History, count: int) -> dict[str, Taken]:
    """Store turns as memories, then append, place and distil them; return the cost of each step and of all three.

    The worker's jobs run here: their events are taken before the server's worker sees them.
    """
    actor = history.actor
    roles = (MessageRole.USER, MessageRole.ASSISTANT)
    messages = [Message(roles[at % 2], text) for at, text in enumerate(history.next(count))]
    drafts = messages_read(messages, infer=True, common=CubeDraft(content="", session_id=SESSION))
    added = cubes_add(actor=actor, drafts=drafts, texts=texts_index(actor.tenant_id, drafts))
    sides = [cube for draft, cube in zip(drafts, added, strict=True) if draft.page_role is not None]
    pages = [_page(*sides[at : at + 2]) for at in range(0, len(sides), 2)]
    stream = StreamRef(history.persona_id, SESSION)
    append = partial(pages_append, actor=actor, stream=stream, drafts=pages, permission=Permission.MEMORY_CREATE)
    system = system_actor(tenant_id=actor.tenant_id, request_id="benchmark")
    appended, written = _run_write(actor, append, Topic.PAGES_WRITTEN)
    placed, hot = _run_job(system, pages_place, written, Topic.SEGMENTS_HOT)
    distilled, _ = _run_job(system, segments_distil, hot, Topic.SEGMENTS_HOT)
    return {"append": appended, "place": placed, "distil": distilled, "turn": appended + placed + distilled}


def _page(question: AddedCube, answer: AddedCube) -> PageDraft:
    return PageDraft(question.cube.id, answer.cube.id, question.cube.created_at)


def _run_job(
    system: Actor, handler: Callable[[Actor, Sequence[Payload]], Write], payloads: Sequence[Payload], topic: Topic
) -> tuple[Taken, list[Payload]]:
    """Run a job of the worker for these payloads; return its cost, and the payloads of `topic` that it emitted."""
    if not payloads:
        return Taken(0.0, 0), []
    writes: list[Write] = []
    read = _measure(lambda: writes.append(handler(system, payloads)))
    written, left = _run_write(system, writes[0], topic)
    return read + written, left


def _run_write(actor: Actor, work: Callable[[], object], topic: Topic) -> tuple[Taken, list[Payload]]:
    """Run a write in its transaction; return its cost, and the payloads of `topic` that it emitted."""
    payloads: list[Payload] = []
    taking: list[Taken] = []

    def run() -> None:
        with acting(actor):
            work()
            taking.append(_measure(lambda: payloads.extend(_claim_events(actor, topic))))

    whole = _measure(run)
    return whole - taking[0], payloads


def _claim_events(actor: Actor, topic: Topic) -> list[Payload]:
    """Take the actor's events of a topic from the server's worker, outside of the measurement."""
    events = OutboxEvent.objects.filter(topic=topic, request_id=actor.request_id, done_at=None)
    payloads = list(events.values_list("payload", flat=True))
    events.update(done_at=Now())
    return payloads


def _measure(work: Callable[[], object]) -> Taken:
    count = [0]

    def execute(run: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        count[0] += 1
        return run(sql, params, many, context)

    started = time.perf_counter()
    with connection.execute_wrapper(execute):
        work()
    return Taken((time.perf_counter() - started) * 1000, count[0])
