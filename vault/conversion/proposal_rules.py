"""The policy that proposes conversions: by how often memories enter a persona's prompts, and how long they have not
changed. Pure.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from pydantic import Field

from vault.vocabulary import MemoryType


@dataclass(frozen=True)
class ProposalSettings:
    """turns: the last ones of a persona that are read. share: of them, at least, a memory must enter. stable_days:
    without a change. uses: of a cache, before an adapter of it is proposed. idle_days: without a use, before text is
    proposed again. automatic: the caches that the product may make by itself, on a local engine.
    """

    turns: Annotated[int, Field(ge=10, le=500)] = 100
    share: Annotated[float, Field(ge=0.05, le=1)] = 0.3
    stable_days: Annotated[int, Field(ge=0, le=365)] = 3
    uses: Annotated[int, Field(ge=1, le=10_000)] = 20
    idle_days: Annotated[int, Field(ge=1, le=365)] = 14
    automatic: Annotated[int, Field(ge=0, le=10)] = 2


@dataclass(frozen=True)
class Frequent:
    """The memories of one namespace that enter a persona's prompts often, in the order in which they were stored.
    turns: in which one of them entered.
    """

    memory_ids: tuple[UUID, ...]
    turns: int


LEAST_TURNS = 5  # of a persona, before anything is proposed for it


def find_frequent(
    turns: Sequence[Collection[UUID]], places: Mapping[UUID, UUID], tokens: Mapping[UUID, int], share: float
) -> Frequent | None:
    """Return the frequent memories of the namespace that has most tokens of them; None without any.

    turns: the memories that entered each turn's prompt. places, tokens: of the memories that may be proposed.
    """
    if len(turns) < LEAST_TURNS:
        return None
    counts = Counter(memory_id for turn in turns for memory_id in set(turn) if memory_id in places)
    often = [memory_id for memory_id, count in counts.items() if count >= share * len(turns)]
    sizes: Counter[UUID] = Counter()
    for memory_id in often:
        sizes[places[memory_id]] += tokens[memory_id]
    if not sizes:
        return None
    place = max(sizes, key=lambda each: (sizes[each], each))
    chosen = tuple(sorted(memory_id for memory_id in often if places[memory_id] == place))
    return Frequent(chosen, sum(1 for turn in turns if not set(chosen).isdisjoint(turn)))


def basis_of(kind: MemoryType, persona_id: UUID | None, versions: Mapping[UUID, int], form_id: UUID | None) -> bytes:
    """Return the digest by which a proposal is known again. versions: of its memories."""
    parts = [kind, str(persona_id), str(form_id), *(f"{each}@{versions[each]}" for each in sorted(versions))]
    return hashlib.sha256("|".join(parts).encode()).digest()
