"""Replay of a persona's history: computes which layer each page would be in under other constants. Stores nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import numpy as np
from django.db.models.functions import Coalesce

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.personas.lookup import OBJECT_TYPE
from governance.vocabulary import Permission, Topic, Verb
from vault.embeddings.calibration import calibrate
from vault.layers.constants import constants_check, constants_in_force
from vault.layers.rules import (
    NAMES,
    Constants,
    SegmentState,
    best_segment,
    coldest,
    continues,
    fscore,
    is_hot,
    merge_constants,
)
from vault.layers.selectors import persona_authorize
from vault.models import Page
from vault.providers.ports import Matrix

LATEST = 500  # pages of a replay that somebody waits for
MOST = 10_000


@dataclass(frozen=True)
class PastPage:
    """The data of a page that a replay needs, without its text. vector: by `model`; language: of its text."""

    stream: UUID
    at: datetime
    keywords: frozenset[int]
    vector: Matrix = field(repr=False)
    model: str = ""
    language: str = ""

    def measure_near(self, vector: Matrix) -> float:
        """Return the calibrated cosine of the page and a vector of the same model."""
        return calibrate(_cosine(vector, self.vector), self.model, self.language)


@dataclass(frozen=True)
class Outcome:
    """The places of the pages after a replay.

    joined: the number of pages that joined a segment; largest: the number of pages of the largest segment.
    """

    pages: int
    queued: int
    chains: int
    segments: int
    joined: int
    largest: int
    evicted: int
    distilled: int
    promoted_pages: int


@dataclass
class _Segment:
    vector: Matrix = field(repr=False)
    keywords: Counter[int]
    pages: int
    unpromoted: int
    created_at: datetime
    visited_at: datetime

    def state(self, now: datetime) -> SegmentState:
        idle = (now - self.visited_at).total_seconds()
        return SegmentState(0, self.unpromoted, idle, self.visited_at, self.created_at)


def layers_replay(
    *, actor: Actor, persona_id: UUID, values: Mapping[str, float], latest: int = LATEST
) -> tuple[Outcome, Outcome]:
    """Replay the `latest` pages of a persona with its current constants, and with these changed by `values`.

    Visits are not replayed, as they depend on questions. Raises NotFound; Forbidden; Invalid. Writes: AuditEntry.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        constants_check(values)
        present = constants_in_force(persona_id)
        tried = merge_constants({name: getattr(present, name) for name in NAMES}, values)
        pages = _load_history(persona_id, latest)
        record(actor=actor, verb=Verb.PERSONA_READ, object_type=OBJECT_TYPE, object_ids=[persona_id])
    return replay_pages(pages, present), replay_pages(pages, tried)


def replay_later(*, actor: Actor, persona_id: UUID, values: Mapping[str, float]) -> JobView:
    """Request a job that replays all of a persona's history.

    Raises NotFound; Forbidden; Invalid. Writes: Job, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        constants_check(values)
        settings = {"persona": str(persona_id), "values": dict(values)}
        return job_create(actor=actor, kind=Topic.LAYERS_REPLAY, settings=settings)


@handler(Topic.LAYERS_REPLAY, permission=Permission.MEMORY_READ)
def replay_run(run: JobRun) -> Step:
    """Replay a persona's history as the requesting member; result: the outcomes with current and changed constants."""
    persona_id, values = UUID(run.settings["persona"]), run.settings["values"]
    now, tried = layers_replay(actor=run.actor, persona_id=persona_id, values=values, latest=MOST)
    return Step(done=now.pages, total=now.pages, result={"now": vars(now), "tried": vars(tried)})


def replay_pages(pages: Sequence[PastPage], constants: Constants) -> Outcome:
    """Replay queues, chains, segments, eviction and promotion of `pages`, oldest first. Pure."""
    queues: dict[UUID, list[PastPage]] = {}
    segments: dict[int, _Segment] = {}
    chains = joined = evicted = distilled = promoted = opened = 0
    for page in pages:
        queue = queues.setdefault(page.stream, [])
        chains += not (queue and _continues_chain(queue[-1], page, constants))
        leaving = queue[: max(len(queue) + 1 - constants.stm_pages, 0)]
        queues[page.stream] = [*queue[len(leaving) :], page]
        for oldest in leaving:
            key = _find_best_segment(segments, oldest, constants)
            joined += key is not None
            if key is None:
                while len(segments) >= constants.segments:
                    states = {name: segment.state(page.at) for name, segment in segments.items()}
                    del segments[coldest(states, constants)]
                    evicted += 1
                opened += 1
                key = opened
                segments[key] = _Segment(oldest.vector, Counter(), 0, 0, page.at, page.at)
            _join_segment(segments[key], oldest, page.at)
            if is_hot(segments[key].state(page.at), constants):
                distilled += 1
                promoted += segments[key].unpromoted
                segments[key].unpromoted = 0
    return Outcome(
        pages=len(pages),
        queued=sum(map(len, queues.values())),
        chains=chains,
        segments=len(segments),
        joined=joined,
        largest=max((segment.pages for segment in segments.values()), default=0),
        evicted=evicted,
        distilled=distilled,
        promoted_pages=promoted,
    )


def _load_history(persona_id: UUID, latest: int) -> list[PastPage]:
    rows = Page.objects.filter(stream__persona_id=persona_id).exclude(vector=None)
    newest = rows.order_by("-id").values_list("model", flat=True).first()
    found = rows.filter(model=newest or "").order_by("-id")
    language = Coalesce("query__language", "response__language")
    some = found.values_list("stream_id", "at", "keywords", "vector", "model", language)[:latest]
    return [
        PastPage(stream, at, frozenset(keywords), np.asarray(vector, dtype=np.float32), model, tongue or "")
        for stream, at, keywords, vector, model, tongue in reversed(some)
    ]


def _continues_chain(before: PastPage, page: PastPage, constants: Constants) -> bool:
    return continues(
        cosine=page.measure_near(before.vector),
        shares_keyword=bool(before.keywords & page.keywords),
        gap=(page.at - before.at).total_seconds(),
        constants=constants,
    )


def _find_best_segment(segments: Mapping[int, _Segment], page: PastPage, constants: Constants) -> int | None:
    scores = {
        key: fscore(page.measure_near(segment.vector), set(segment.keywords), page.keywords)
        for key, segment in segments.items()
    }
    return best_segment(scores, constants.theta)


def _join_segment(segment: _Segment, page: PastPage, now: datetime) -> None:
    mean = (segment.vector * segment.pages + page.vector) / (segment.pages + 1)
    segment.vector = mean.astype(np.float32)
    segment.keywords.update(page.keywords)
    segment.pages += 1
    segment.unpromoted += 1
    segment.visited_at = now


def _cosine(first: Matrix, other: Matrix) -> float:
    length = float(np.linalg.norm(first) * np.linalg.norm(other))
    return float(first @ other) / length if length else 0.0
