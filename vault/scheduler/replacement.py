"""Replacement policies: they score the memories of a working set; those with low scores leave first. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from vault.lifecycle.forgetting_policies import POLICIES as FORGETTING
from vault.lifecycle.forgetting_policies import Forgetting, Use


class ReplacementName(StrEnum):
    """The policies that a tenant and a persona can choose."""

    KEEP = "keep"
    LRU = "lru"
    HEAT = "heat"
    SEMANTIC = "semantic"
    LABEL = "label"


DEFAULT = ReplacementName.KEEP


@dataclass(frozen=True)
class Held:
    """A memory of a working set. near: its cosine with the last turns; labels: the share of its tags, and of those
    of the memories used last, that both have."""

    use: Use
    near: float
    labels: float


class Replacement(Protocol):
    """A replacement policy."""

    def score(self, held: Held) -> float:
        """Return 0..1: how much a memory should stay."""


class ByUse:
    """A forgetting policy as a replacement policy: `keep`, `lru` or `heat`."""

    def __init__(self, name: Forgetting) -> None:
        self.policy = FORGETTING[name]
        self.is_bounded = name is not Forgetting.HEAT

    def score(self, held: Held) -> float:
        score = self.policy.judge(held.use).score
        return min(score, 1.0) if self.is_bounded else score / (1 + score)


class Semantic:
    """Memories near to the last turns stay."""

    def score(self, held: Held) -> float:
        return min(max(held.near, 0.0), 1.0)


class Label:
    """Memories that share tags with those used last stay."""

    def score(self, held: Held) -> float:
        return held.labels


REPLACEMENTS: Mapping[ReplacementName, Replacement] = {
    ReplacementName.KEEP: ByUse(Forgetting.KEEP),
    ReplacementName.LRU: ByUse(Forgetting.LRU),
    ReplacementName.HEAT: ByUse(Forgetting.HEAT),
    ReplacementName.SEMANTIC: Semantic(),
    ReplacementName.LABEL: Label(),
}
