"""Forgetting policies: they decide which memories a sweep archives, and give the reason. Pure.

Forgetting only archives. Only expiry, retention policies and people delete.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from math import exp, log
from typing import Protocol

STRENGTH = timedelta(days=30)  # S of a memory that was never recalled
MANY_USES = 100  # from here on, log-scaled use is 1
LEAST_EXPONENT = -700  # below it, exp is an error in PostgreSQL
RECENCY_SECONDS = 1e7  # μ of heat (MemoryOS, arXiv 2506.06326 §3.3)


class Forgetting(StrEnum):
    """The forgetting policies that a schedule can name."""

    KEEP = "keep"
    LRU = "lru"
    HEAT = "heat"


@dataclass(frozen=True)
class Use:
    """The use of a memory. idle: time since it was last written, read or recalled. importance, priority: 0..1."""

    idle: timedelta
    recalls: int
    importance: float
    priority: float


@dataclass(frozen=True)
class Judgement:
    """The judgement of a policy. score: memories with low scores are archived first. reason: text for the memory's
    page."""

    score: float
    reason: str


class ForgettingPolicy(Protocol):
    """A forgetting policy scores memories. A sweep archives those with a score below the limit of its schedule."""

    limit: float
    """The limit where a schedule names none."""
    sql: str
    """The score as SQL of `idle` (seconds), `uses`, `importance` and `priority`: it chooses among many memories."""

    def judge(self, use: Use) -> Judgement: ...


class KeepFormula:
    """The policy `keep`: .35·exp(−Δt/S) + .25·importance + .2·log-scaled use + .2·priority, 0..1; S grows with each
    recall."""

    limit = 0.2
    sql = (
        f"0.35 * exp(greatest({LEAST_EXPONENT}, -idle / ({STRENGTH.total_seconds()} * (1 + uses)))) "
        f"+ 0.25 * importance + 0.2 * least(1, ln(1 + uses) / ln(1 + {MANY_USES})) + 0.2 * priority"
    )

    def judge(self, use: Use) -> Judgement:
        strength = STRENGTH * (1 + use.recalls)
        recency = exp(-(use.idle / strength))
        often = min(1.0, log(1 + use.recalls) / log(1 + MANY_USES))
        score = 0.35 * recency + 0.25 * use.importance + 0.2 * often + 0.2 * use.priority
        return Judgement(score, f"{_describe_use(use)}, importance {use.importance:.2f}, priority {use.priority:.2f}")


class LeastRecentlyUsed:
    """The policy `lru`: 1 / (1 + days since the last use)."""

    limit = 1 / (1 + 90)
    sql = "1 / (1 + idle / 86400)"

    def judge(self, use: Use) -> Judgement:
        return Judgement(1 / (1 + _count_days(use.idle)), _describe_use(use))


class Heat:
    """The policy `heat`: α·uses + γ·exp(−Δt/μ) with α = γ = 1 (MemoryOS §3.3; a single memory has no pages to
    promote)."""

    limit = 0.5
    sql = f"uses + exp(greatest({LEAST_EXPONENT}, -idle / {RECENCY_SECONDS}))"

    def judge(self, use: Use) -> Judgement:
        score = use.recalls + exp(-use.idle.total_seconds() / RECENCY_SECONDS)
        return Judgement(score, _describe_use(use))


POLICIES: Mapping[Forgetting, ForgettingPolicy] = {
    Forgetting.KEEP: KeepFormula(),
    Forgetting.LRU: LeastRecentlyUsed(),
    Forgetting.HEAT: Heat(),
}


def reason_to_archive(name: Forgetting, use: Use, limit: float | None = None) -> str:
    """Return the reason for archiving this memory, for its page; empty if it stays. limit None: the policy's own
    limit."""
    policy = POLICIES[name]
    least = policy.limit if limit is None else limit
    found = policy.judge(use)
    if found.score >= least:
        return ""
    return f"Archived because its {name} score is {found.score:.3f}, below {least:.3f}: {found.reason}."


def _describe_use(use: Use) -> str:
    return f"last used {_count_days(use.idle):.0f} days ago, used {use.recalls} times"


def _count_days(time: timedelta) -> float:
    return time / timedelta(days=1)
