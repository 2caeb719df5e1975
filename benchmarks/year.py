"""Simulates a year of a tenant's memories: their times are moved back step by step, with a sweep after each step.

Of ten memories one is recalled in every step, one is important, two expire during the year, and six are unused. Some
pairs of statements contradict each other.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection

from benchmarks.client import BenchmarkError, Target
from benchmarks.lifecycle import await_job, await_sweep
from benchmarks.synthetic import conversation
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_jobs, cubes_in, drafts_of, fill_tenant, owner_of
from governance.database import acting
from governance.vocabulary import Topic
from vault.content.drafts import CubeDraft
from vault.cubes.jobs import cubes_count_reads
from vault.models import Cube, Review
from vault.vocabulary import ReviewKind, ReviewStatus, State

SEED = 20_261_126
PLACE = "/year"
DAYS = 364
GROUPS = 10
RECALLED, IMPORTANT, EXPIRING = 0, 1, (2, 3)  # numbers of a memory, modulo GROUPS
PAIRS = 10  # contradictions
SERIES = ("active", "archived", "expired", "gone")
COLORS = {"active": "#2f9e6e", "archived": "#5b7fd6", "expired": "#e0a030", "gone": "#a0a4ab"}
WIDTH, HEIGHT, LEFT, TOP = 720, 300, 56, 16
MOVE = """
UPDATE vault_cube SET created_at = created_at - %(step)s, updated_at = updated_at - %(step)s,
  expires_at = expires_at - %(step)s WHERE tenant_id = %(tenant)s
"""
MOVE_USES = "UPDATE vault_cubeuse SET last_accessed_at = last_accessed_at - %(step)s WHERE tenant_id = %(tenant)s"


def year(target: Target, cubes: int, days: int, chart: Path) -> dict[str, Any]:
    """Return the number of memories in each state after each step of `days` days, and draw them as an SVG.

    Raises BenchmarkError if a recalled memory was archived, or an expired one outlived its grace period.
    """
    owner = owner_of(f"bench-year-{cubes}-{days}")
    if cubes_in(owner.actor):
        raise BenchmarkError("this tenant has lived its year: begin on an empty data directory")
    ids = fill_tenant(owner.actor, [*_drafts(cubes, days), *_contradictions()])
    await_jobs(owner.actor)
    recalled = ids[RECALLED:cubes:GROUPS]
    steps = [{"day": 0, **_counts(owner, len(ids))}]
    started = time.perf_counter()
    for day in range(days, DAYS + 1, days):
        await_jobs(owner.actor)  # jobs that the last sweep started lock the same rows
        _move(owner, days)
        _recall(owner, recalled)
        await_sweep(owner, {})
        steps.append({"day": day, **_counts(owner, len(ids))})
    seconds = time.perf_counter() - started
    await_job(owner, Topic.CONFLICTS_PROPOSE, {})
    asked = _count_questions(owner)
    _check(owner, recalled, asked)
    chart.write_text(_svg(steps, len(ids)), encoding="utf-8")
    return {"cubes": len(ids), "seed": SEED, "days of a step": days, "seconds": round(seconds, 1), "asked": asked} | {
        "steps": {f"day {step['day']}": {name: step[name] for name in SERIES} for step in steps}
    }


def year_table(figures: dict[str, Any]) -> str:
    rows = [[day, *(counts[name] for name in SERIES)] for day, counts in figures["steps"].items()]
    return markdown(["", *SERIES], rows)


def _drafts(cubes: int, days: int) -> list[CubeDraft]:
    now = datetime.now(UTC)
    steps = DAYS // days
    drafts = drafts_of(conversation(cubes, SEED), PLACE)
    for number, draft in enumerate(drafts):
        group = number % GROUPS
        if group == IMPORTANT:
            drafts[number] = replace(draft, importance=0.9)
        if group in EXPIRING:
            step = 1 + (number // GROUPS) % steps
            drafts[number] = replace(draft, expires_at=now + timedelta(days=step * days, hours=-1))
    return drafts


def _contradictions() -> list[CubeDraft]:
    """Return pairs of statements about one subject each, of which the second contradicts the first."""
    stated = ("drinks coffee black every morning", "does not drink coffee black every morning")
    return [
        CubeDraft(content=f"Person {number} {text}.", namespace=PLACE, subject=f"person-{number}", importance=0.9)
        for number in range(PAIRS)
        for text in stated
    ]


def _move(owner: Caller, days: int) -> None:
    values: dict[str, Any] = {"step": timedelta(days=days), "tenant": owner.actor.tenant_id}
    with acting(owner.actor), connection.cursor() as cursor:
        cursor.execute(MOVE, values)
        cursor.execute(MOVE_USES, values)


def _recall(owner: Caller, ids: Sequence[UUID]) -> None:
    """Count a read of these memories, as the job behind a search does."""
    write = cubes_count_reads(owner.actor, [{"ids": [str(id) for id in ids]}])
    with acting(owner.actor):
        write()


def _counts(owner: Caller, cubes: int) -> dict[str, int]:
    with acting(owner.actor):
        states = list(Cube.objects.filter(tenant_id=owner.actor.tenant_id).values_list("state", flat=True))
    archived, expired = states.count(State.ARCHIVED), states.count(State.EXPIRED)
    gone = cubes - len(states)
    return {"active": len(states) - archived - expired, "archived": archived, "expired": expired, "gone": gone}


def _check(owner: Caller, recalled: Sequence[UUID], asked: int) -> None:
    with acting(owner.actor):
        rows = Cube.objects.filter(tenant_id=owner.actor.tenant_id)
        lost = len(recalled) - rows.filter(id__in=recalled, state__in=[State.GENERATED, State.ACTIVATED]).count()
        left = rows.filter(expires_at__lt=datetime.now(UTC) - timedelta(days=31)).count()
    if lost or left or asked < PAIRS:
        raise BenchmarkError(
            f"{lost} recalled memories were archived, {left} outlived their grace period, {asked} of {PAIRS} asked"
        )


def _count_questions(owner: Caller) -> int:
    with acting(owner.actor):
        return Review.objects.filter(kind=ReviewKind.CONFLICT, status=ReviewStatus.OPEN).count()


def _svg(steps: Sequence[dict[str, int]], cubes: int) -> str:
    """Return a chart of stacked areas: the memories of each state over the days."""
    below = [0] * len(steps)
    areas = []
    for name in SERIES:
        above = [base + step[name] for base, step in zip(below, steps, strict=True)]
        line = [_point(step["day"], count, cubes) for step, count in zip(steps, above, strict=True)]
        floor = [_point(step["day"], count, cubes) for step, count in zip(steps, below, strict=True)]
        areas.append(f'<polygon fill="{COLORS[name]}" points="{" ".join([*line, *reversed(floor)])}"/>')
        below = above
    keys = "".join(
        f'<rect x="{LEFT + 130 * at}" y="{HEIGHT + 52}" width="12" height="12" fill="{COLORS[name]}"/>'
        f'<text x="{LEFT + 130 * at + 18}" y="{HEIGHT + 63}">{name}</text>'
        for at, name in enumerate(SERIES)
    )
    marks = "".join(
        f'<text x="{_point(day, 0, cubes).partition(",")[0]}" y="{HEIGHT + TOP + 18}" text-anchor="middle">{day}</text>'
        for day in range(0, DAYS + 1, 91)
    )
    size = f'viewBox="0 0 {LEFT + WIDTH + 24} {HEIGHT + 76}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13" fill="#6b7078">'
        f"<title>The memories of a tenant by state, over a year</title>{''.join(areas)}"
        f'<text x="{LEFT - 8}" y="{TOP + 10}" text-anchor="end">{cubes:,}</text>'
        f'<text x="{LEFT - 8}" y="{HEIGHT + TOP}" text-anchor="end">0</text>{marks}'
        f'<text x="{LEFT + WIDTH / 2}" y="{HEIGHT + TOP + 34}" text-anchor="middle">days</text>{keys}</svg>\n'
    )


def _point(day: int, count: int, cubes: int) -> str:
    return f"{LEFT + WIDTH * day / DAYS:.1f},{TOP + HEIGHT * (1 - count / cubes):.1f}"
