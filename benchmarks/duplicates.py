"""Measures the job that proposes near-duplicates, next to comparing all vectors in this process.

One of PLANTED memories is stored a second time with one more word.
"""

import time
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np

from benchmarks.client import BenchmarkError, Target
from benchmarks.lifecycle import await_job
from benchmarks.synthetic import conversation
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_jobs, cubes_in, drafts_of, fill_tenant, owner_of
from governance.database import acting
from governance.vocabulary import Topic
from vault.content.drafts import CubeDraft
from vault.models import Embedding, Review
from vault.vocabulary import ReviewKind, SemanticType

SEED = 20_261_127
PLACE = "/duplicates"
PLANTED = 100
THRESHOLD = 0.95
GOAL_SECONDS = 300.0  # for 100,000 memories
BLOCK = 1_000  # vectors that are compared with all others at once


def duplicates(target: Target, cubes: int) -> dict[str, Any]:
    """Return the figures of one run. The tenant is kept, with open proposals. Raises BenchmarkError."""
    owner = owner_of(f"bench-duplicates-{cubes}")
    if cubes_in(owner.actor) != cubes:
        fill_tenant(owner.actor, _drafts(cubes))
    await_jobs(owner.actor)
    exact_seconds, near = _compare_all(owner)
    seconds = await_job(owner, Topic.FUSIONS_PROPOSE, {"threshold": THRESHOLD})
    proposed = _list_proposals(owner)
    again = await_job(owner, Topic.FUSIONS_PROPOSE, {"threshold": THRESHOLD})
    if _list_proposals(owner) != proposed:
        raise BenchmarkError("a second run proposed more")
    return {
        "cubes": cubes,
        "seed": SEED,
        "threshold": THRESHOLD,
        "planted": cubes // PLANTED // 2,
        "near memories": len(near),
        "of them proposed": round(len(near & {id for pair in proposed for id in pair}) / max(1, len(near)), 4),
        "proposals": len(proposed),
        "job s": round(seconds, 2),
        "second job s": round(again, 2),
        "all compared s": round(exact_seconds, 2),
        "goal s": GOAL_SECONDS * cubes / 100_000,
    }


def duplicates_table(figures: dict[str, Any]) -> str:
    names = ("cubes", "proposals", "of them proposed", "job s", "second job s", "all compared s", "goal s")
    return markdown(list(names), [[figures[name] for name in names]])


def _drafts(cubes: int) -> list[CubeDraft]:
    """Return facts in one namespace; in every hundredth pair the second repeats the first."""
    drafts = [replace(draft, semantic_type=SemanticType.FACT) for draft in drafts_of(conversation(cubes, SEED), PLACE)]
    for number in range(0, cubes - 1, 2 * PLANTED):
        drafts[number + 1] = replace(drafts[number], content=f"{drafts[number].content} Indeed.")
    return drafts


def _compare_all(owner: Caller) -> tuple[float, set[UUID]]:
    """Compare all vectors with each other; return the seconds, and the memories with a near one."""
    with acting(owner.actor):
        rows = list(Embedding.objects.filter(tenant_id=owner.actor.tenant_id).values_list("cube_id", "vector"))
    ids = [cube_id for cube_id, _ in rows]
    vectors = np.array([vector for _, vector in rows], dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near: set[UUID] = set()
    started = time.perf_counter()
    for start in range(0, len(ids), BLOCK):
        similar = vectors[start : start + BLOCK] @ vectors.T >= THRESHOLD
        similar[np.arange(len(similar)), np.arange(start, start + len(similar))] = False
        near |= {ids[start + int(row)] for row in np.flatnonzero(similar.any(axis=1))}
    return time.perf_counter() - started, near


def _list_proposals(owner: Caller) -> set[tuple[UUID, UUID | None]]:
    with acting(owner.actor):
        rows = Review.objects.filter(tenant_id=owner.actor.tenant_id, kind=ReviewKind.FUSION)
        return set(rows.values_list("cube_id", "other_id"))
