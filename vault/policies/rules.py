"""Effects of a change of a policy. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from governance.policies.rules import (
    Expiry,
    Facts,
    Lifetime,
    Rule,
    Sharing,
    exceeds,
    expiry_under,
    may_publish,
    may_share,
)
from governance.vocabulary import Recipient, RoleName

SAMPLES = 10  # ids told of one effect


class Effect(StrEnum):
    """The effect of a change on a memory, a reader or a writer."""

    EXPIRES_AT_ONCE = "expires_at_once"
    EXPIRES_NEWLY = "expires_newly"
    EXPIRES_SOONER = "expires_sooner"
    EXPIRES_LATER = "expires_later"
    WRITE_REFUSED = "write_refused"
    WRITE_ALLOWED = "write_allowed"
    READER_LOSES = "reader_loses"
    READER_GAINS = "reader_gains"
    SHARING_NARROWED = "sharing_narrowed"
    SHARING_WIDENED = "sharing_widened"
    GRANT_FORBIDDEN = "grant_forbidden"
    PII_CHANGES = "pii_changes"
    QUOTA_REACHED = "quota_reached"
    ADAPTER_REFUSED = "adapter_refused"
    ADAPTER_ALLOWED = "adapter_allowed"


@dataclass(frozen=True)
class Outcome:
    """The number of rows with one effect, and some of their ids. `about`: the purpose, action or measure.

    `readers`: the number of recent readers for this purpose.
    """

    effect: Effect
    count: int
    sample_ids: tuple[UUID, ...]
    about: str = ""
    readers: int | None = None


@dataclass
class Tally:
    """Counts effects as they are found."""

    _found: dict[tuple[Effect, str], list[UUID]] = field(default_factory=dict)
    _counts: dict[tuple[Effect, str], int] = field(default_factory=dict)

    def add(self, effect: Effect, object_id: UUID, about: str = "") -> None:
        key = (effect, about)
        self._counts[key] = self._counts.get(key, 0) + 1
        samples = self._found.setdefault(key, [])
        if len(samples) < SAMPLES:
            samples.append(object_id)

    def outcomes(self) -> list[Outcome]:
        order = list(Effect)
        keys = sorted(self._counts, key=lambda key: (order.index(key[0]), key[1]))
        return [Outcome(key[0], self._counts[key], tuple(self._found[key]), key[1]) for key in keys]


def expiry_effect(lifetime: Lifetime | None, *, born: datetime, present: Expiry, now: datetime) -> Effect | None:
    """Return the effect of retention on a stored memory, by the rule of the job that applies it."""
    wanted = expiry_under(lifetime, born=born, present=present).at
    if wanted == present.at:
        return None
    if wanted is None:
        return Effect.EXPIRES_LATER
    if wanted <= now:
        return Effect.EXPIRES_AT_ONCE
    if present.at is None:
        return Effect.EXPIRES_NEWLY
    return Effect.EXPIRES_SOONER if wanted < present.at else Effect.EXPIRES_LATER


def would_refuse(lifetime: Lifetime | None, *, born: datetime, asked: Expiry) -> bool:
    """Return whether a writer who requested this expiry would have been refused."""
    if asked.at is None or asked.policy_id is not None or lifetime is None:
        return False
    return exceeds(lifetime, born=born, at=asked.at)


def openness(rules: Sequence[Rule[Sharing]], facts: Facts) -> frozenset[str]:
    """Return all permitted recipients of a memory: kinds with their roles, and the world."""
    given = {
        f"{recipient}:{role}"
        for recipient in Recipient
        for role in RoleName
        if may_share(rules, facts, recipient, {role}).allowed
    }
    return frozenset(given | ({"world"} if may_publish(rules, facts).allowed else set()))


def sharing_effects(before: frozenset[str], after: frozenset[str]) -> list[Effect]:
    return [
        *([Effect.SHARING_NARROWED] if before - after else []),
        *([Effect.SHARING_WIDENED] if after - before else []),
    ]
