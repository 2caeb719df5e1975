"""Measure the layers: each turn of one persona, and the context of a question, as the history grows."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.db.models.functions import Now

from benchmarks.client import Target
from benchmarks.report import timing
from benchmarks.synthetic import conversation
from benchmarks.tables import markdown
from benchmarks.tenants import jobs_awaited, owner_of
from governance.actor import Actor, system_actor
from governance.database import acting
from governance.models import OutboxEvent
from governance.vocabulary import Permission, Topic
from vault.cubes.drafts import CubeDraft
from vault.cubes.services import Added, cubes_add
from vault.cubes.writer.building import texts_index
from vault.layers.constants import constants_in_force
from vault.layers.distilling import segments_distil
from vault.layers.placing import pages_place
from vault.layers.scoring import hot_segments
from vault.layers.searching import context_assemble, layers_search
from vault.layers.services import PageDraft, StreamRef, pages_append, persona_of_member
from vault.models import Stream
from vault.reader.services import Message, messages_read
from vault.retrieval.queries import SearchQuery
from vault.vocabulary import MessageRole

SEED = 20_260_104
WINDOW = 50  # turns timed one by one at each size
PART = 100  # turns stored at once between the sizes
QUESTIONS = 20
SESSION = "benchmark"
PARTS = ("append", "place", "distil")


def layers(target: Target, sizes: Sequence[int]) -> dict[str, Any]:
    """The figures of one run, in a tenant of its own, which stays."""
    actor = owner_of(f"bench-layers-{uuid4().hex[:8]}").actor
    return layers_measured(actor, sizes)


def layers_measured(actor: Actor, sizes: Sequence[int]) -> dict[str, Any]:
    """For each size: milliseconds of each part of a turn, of all of them, of a context and of its layers alone."""
    with acting(actor):
        persona_id = persona_of_member(actor)
    assert persona_id is not None
    texts = [turn.text for turn in conversation(2 * max(sizes), SEED)]
    figures: dict[str, Any] = {"seed": SEED}
    done = 0
    for size in sorted(sizes):
        while done < size - WINDOW:
            count = min(PART, size - WINDOW - done)
            _turns(actor, persona_id, texts[2 * done : 2 * (done + count)])
            done += count
        times = [_turns(actor, persona_id, texts[2 * at : 2 * at + 2]) for at in range(done, size)]
        done = size
        jobs_awaited(actor)  # the memories have their vectors
        asked = texts[:QUESTIONS]
        parts = {
            **{part: [one[place] for one in times] for place, part in enumerate(PARTS)},
            "turn": [sum(one) for one in times],
            "layers of a context": [_timed(partial(_layers, actor, text)) for text in asked],
            "context": [_timed(partial(_context, actor, text)) for text in asked],
        }
        figures[f"{size} turns"] = {part: asdict(timing(some)) for part, some in parts.items()}
    return figures


def layers_table(figures: dict[str, Any]) -> str:
    headers = ["history", "what", "p50 ms", "p95 ms"]
    rows = [
        [size, what, found["p50"], found["p95"]]
        for size, parts in figures.items()
        if isinstance(parts, dict)
        for what, found in parts.items()
    ]
    return markdown(headers, rows)


def _turns(actor: Actor, persona_id: UUID, texts: Sequence[str]) -> tuple[float, float, float]:
    """Store turns as memories, then append, place and distil them; the milliseconds of these three."""
    roles = (MessageRole.USER, MessageRole.ASSISTANT)
    messages = [Message(roles[at % 2], text) for at, text in enumerate(texts)]
    drafts = messages_read(messages, infer=True, common=CubeDraft(content="", session_id=SESSION))
    added = cubes_add(actor=actor, drafts=drafts, texts=texts_index(actor.tenant_id, drafts))
    sides = [one for draft, one in zip(drafts, added, strict=True) if draft.page_role is not None]
    pages = [_page(*sides[at : at + 2]) for at in range(0, len(sides), 2)]
    stream = StreamRef(persona_id, SESSION)
    append = _timed(lambda: _append(actor, stream, pages))
    system = system_actor(tenant_id=actor.tenant_id, request_id="benchmark")
    return append, _timed(lambda: _place(system, persona_id)), _timed(lambda: _distil(system, persona_id))


def _page(question: Added, answer: Added) -> PageDraft:
    return PageDraft(question.cube.id, answer.cube.id, question.cube.created_at)


def _append(actor: Actor, stream: StreamRef, pages: Sequence[PageDraft]) -> None:
    with acting(actor):
        pages_append(actor=actor, stream=stream, drafts=pages, permission=Permission.MEMORY_CREATE)
        _claim()


def _claim() -> None:
    """Take the events of the layers from the server's worker, before it sees them: their work is measured here."""
    OutboxEvent.objects.filter(topic__in=[Topic.PAGES_WRITTEN, Topic.SEGMENTS_HOT], done_at=None).update(done_at=Now())


def _place(system: Actor, persona_id: UUID) -> None:
    """The worker's first job after a turn: chains and segments."""
    with acting(system):
        streams = [str(one) for one in Stream.objects.filter(persona_id=persona_id).values_list("id", flat=True)]
    for stream in streams:
        write = pages_place(system, [{"stream": stream}])
        with acting(system):
            write()
            _claim()


def _distil(system: Actor, persona_id: UUID) -> None:
    """The worker's second job, where a segment is hot."""
    with acting(system):
        found = hot_segments(persona_id, constants_in_force(persona_id)).values_list("id", flat=True)
        hot = [str(key) for key in found]
    if hot:
        write = segments_distil(system, [{"segments": hot}])
        with acting(system):
            write()


def _layers(actor: Actor, text: str) -> None:
    layers_search(actor=actor, search=SearchQuery(query=text, top_k=100, is_use=False))


def _context(actor: Actor, text: str) -> None:
    context_assemble(actor=actor, search=SearchQuery(query=text, is_use=False))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
