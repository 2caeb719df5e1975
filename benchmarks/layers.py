"""Measure the layers: each turn of one persona, and the context of a question, as the history grows."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from benchmarks.client import Target
from benchmarks.report import timing
from benchmarks.synthetic import conversation
from benchmarks.tables import markdown
from benchmarks.tenants import owner_of
from governance.actor import Actor, system_actor
from governance.database import acting
from governance.vocabulary import Permission
from vault.cubes.drafts import CubeDraft
from vault.cubes.services import Added, cubes_add
from vault.cubes.writer.building import texts_index
from vault.layers.constants import constants_in_force
from vault.layers.distilling import segments_distil
from vault.layers.placing import pages_place
from vault.layers.scoring import hot_segments
from vault.layers.searching import context_assemble
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


def layers(target: Target, sizes: Sequence[int]) -> dict[str, Any]:
    """The figures of one run, in a tenant of its own, which stays."""
    actor = owner_of(f"bench-layers-{uuid4().hex[:8]}").actor
    return layers_measured(actor, sizes)


def layers_measured(actor: Actor, sizes: Sequence[int]) -> dict[str, Any]:
    """For each size: milliseconds of a turn's append, of its jobs, of both, and of a context."""
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
        contexts = [_timed(partial(_context, actor, texts[at])) for at in range(QUESTIONS)]
        figures[f"{size} turns"] = {
            "append": asdict(timing([append for append, _ in times])),
            "jobs": asdict(timing([jobs for _, jobs in times])),
            "turn": asdict(timing([append + jobs for append, jobs in times])),
            "context": asdict(timing(contexts)),
        }
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


def _turns(actor: Actor, persona_id: UUID, texts: Sequence[str]) -> tuple[float, float]:
    """Store turns as memories, then append them and run their jobs; the milliseconds of the last two."""
    roles = (MessageRole.USER, MessageRole.ASSISTANT)
    messages = [Message(roles[at % 2], text) for at, text in enumerate(texts)]
    drafts = messages_read(messages, infer=True, common=CubeDraft(content="", session_id=SESSION))
    added = cubes_add(actor=actor, drafts=drafts, texts=texts_index(actor.tenant_id, drafts))
    sides = [one for draft, one in zip(drafts, added, strict=True) if draft.page_role is not None]
    pages = [_page(*sides[at : at + 2]) for at in range(0, len(sides), 2)]
    stream = StreamRef(persona_id, SESSION)
    append = _timed(lambda: pages_append(actor=actor, stream=stream, drafts=pages, permission=Permission.MEMORY_CREATE))
    return append, _timed(lambda: _jobs(actor, persona_id))


def _page(question: Added, answer: Added) -> PageDraft:
    return PageDraft(question.cube.id, answer.cube.id, question.cube.created_at)


def _jobs(actor: Actor, persona_id: UUID) -> None:
    """Run the jobs of the layers that the worker runs after a turn."""
    system = system_actor(tenant_id=actor.tenant_id, request_id="benchmark")
    with acting(system):
        streams = [str(one) for one in Stream.objects.filter(persona_id=persona_id).values_list("id", flat=True)]
    for stream in streams:
        write = pages_place(system, [{"stream": stream}])
        with acting(system):
            write()
    with acting(system):
        found = hot_segments(persona_id, constants_in_force(persona_id)).values_list("id", flat=True)
        hot = [str(key) for key in found]
    if hot:
        write = segments_distil(system, [{"segments": hot}])
        with acting(system):
            write()


def _context(actor: Actor, text: str) -> None:
    context_assemble(actor=actor, search=SearchQuery(query=text, is_use=False))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
