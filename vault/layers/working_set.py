"""The working set of a persona: the memories that its next turn probably needs, within a budget of tokens.

What does not depend on the last turn comes first, in an order that stays the same, so that the head of a prompt made
from it does, too. What was preloaded after the last turn follows, then the newest pages, topics and entries.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, database_now
from governance.keys.services import token_maker
from governance.pages import First
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import CubeView, cubes_read
from vault.layers.persona import entries_list, profile_get
from vault.layers.rules import fit
from vault.layers.selectors import PageView, pages_view, persona_authorize, says_something, segments_list, stm_list
from vault.layers.services import persona_of_member
from vault.models import Cube, LayerEntry, Page, WorkingSet
from vault.models.cube import PINNED
from vault.retrieval.queries import SHOWN
from vault.vocabulary import EntryQueue

BUDGET = 10_000  # tokens
HOT, ENTRIES = 3, 10
MOST_PINNED = 20
STABLE, WORKING = "stable", "working"  # tiers
BLOCK = "block"  # the tier of memories that are mounted as one, and may be a cache
TEXT = "text"  # the form in which a memory enters a prompt


@dataclass(frozen=True)
class WorkingItem:
    """A memory of the working set. reason: profile, pinned, recent, hot_topic, new_entry, or the predictor that
    preloaded it; score: 0..1, 0 for what no predictor named.
    """

    view: CubeView
    reason: str
    score: float = 0.0
    tier: str = WORKING
    form: str = TEXT

    @property
    def tokens(self) -> int:
        return self.view.cube.token_count


@dataclass(frozen=True)
class Preloaded:
    """A memory that was preloaded for the next turn of a stream, and the predictor that named it. score: 0..1."""

    memory_id: UUID
    reason: str
    score: float
    tokens: int


def working_set(*, actor: Actor, persona_id: UUID, session: str = "", budget: int = BUDGET) -> list[WorkingItem]:
    """Return the profile and pinned memories, then what was preloaded, the newest pages, the newest page of each of the
    hottest segments, and the newest entries. session: of the stream; empty for that with the newest set.

    Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry ….
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        fields = profile_get(actor=actor, persona_id=persona_id)
        items = [WorkingItem(field.view, "profile", 1.0, STABLE) for field in fields if field.view]
        pinned = [Preloaded(cube_id, "pinned", 1.0, 0) for cube_id in _pinned_ids(actor, persona_id)]
        items += _open(actor, _keep_readable(actor, [*pinned, *preloaded_list(actor, persona_id, session)]))
        recent = stm_list(actor=actor, persona_id=persona_id, pages=First(7))
        items += [WorkingItem(side, "recent") for page in recent for side in _list_sides(page)]
        hot = segments_list(actor=actor, persona_id=persona_id, pages=First(HOT))
        newest = (
            Page.objects.filter(segment__in=[segment.row.id for segment in hot])
            .defer("vector")
            .order_by("segment", "-id")
        )
        last = pages_view(actor, list(newest.distinct("segment")))
        items += [WorkingItem(side, "hot_topic") for page in last for side in _list_sides(page)]
        entries = entries_list(actor=actor, persona_id=persona_id, queue=EntryQueue.KNOWLEDGE, pages=First(ENTRIES))
        items += [WorkingItem(entry.view, "new_entry") for entry in entries]
    first = {item.view.cube.id: item for item in reversed(items)}
    ordered = [item for item in items if first[item.view.cube.id] is item]
    return fit(ordered, lambda item: item.tokens, budget)


def _list_sides(page: PageView) -> list[CubeView]:
    """Return the question and the answer of a page, without answers that only quote or say a fixed phrase."""
    return [side for side in (page.query, page.response) if side and says_something(side.words)]


def turn_working_set(
    *, actor: Actor, session: str, stable: int, working: int, most: int, known: AbstractSet[UUID] = frozenset()
) -> list[WorkingItem]:
    """Return the part of the working set of the actor's own persona that a model gets with a question: profile and
    pinned memories, then the best `most` that were preloaded and are not `known`. stable, working: the most tokens of
    each.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry? naming the memories.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        persona_id = persona_of_member(actor)
        if persona_id is None:
            return []
        always = [Preloaded(cube_id, "profile", 1.0, 0) for cube_id in _profile_ids(persona_id)]
        always += [Preloaded(cube_id, "pinned", 1.0, 0) for cube_id in _pinned_ids(actor, persona_id)]
        after = _choose_best(preloaded_list(actor, persona_id, session), working, most, known) if most > 0 else []
        wanted: dict[UUID, Preloaded] = {}
        for row in (*always, *after):
            wanted.setdefault(row.memory_id, row)
        items = _open(actor, _keep_readable(actor, list(wanted.values())), Permission.CONVERSATION_USE)
    first = [item for item in items if item.tier == STABLE]
    return [*fit(first, lambda item: item.tokens, stable), *(item for item in items if item.tier == WORKING)]


def _choose_best(rows: Sequence[Preloaded], budget: int, most: int, known: AbstractSet[UUID]) -> list[Preloaded]:
    """Return the `most` rows with the highest scores within a budget of tokens, in their order."""
    new = [row for row in rows if row.memory_id not in known]
    best = fit(sorted(new, key=lambda row: -row.score), lambda row: row.tokens, budget)
    chosen = {row.memory_id for row in best[:most]}
    return [row for row in rows if row.memory_id in chosen]


def preloaded_list(actor: Actor, persona_id: UUID, session: str = "") -> list[Preloaded]:
    """Return what was preloaded for a stream, whoever may read it. session: empty for the newest set. One query."""
    rows = WorkingSet.objects.filter(persona_id=persona_id)
    if session:
        rows = rows.filter(stream__session_token=token_maker(actor.tenant_id).token("stream", session))
    row = rows.order_by("-made_at").first()
    return [load_preloaded(item) for item in row.items] if row else []


def load_preloaded(item: dict[str, Any]) -> Preloaded:
    return Preloaded(**{**item, "memory_id": UUID(item["memory_id"])})


def readable_ids(actor: Actor, cube_ids: Sequence[UUID]) -> set[UUID]:
    """Return those of the memories that the actor may read and that a search would return. One query."""
    now = database_now()
    rows = Cube.objects.visible_to(actor).filter(id__in=cube_ids, state__in=SHOWN, is_indexed=True)
    return set(rows.exclude(superseded_by__isnull=False, valid_to__lte=now).values_list("id", flat=True))


def _keep_readable(actor: Actor, rows: Sequence[Preloaded]) -> list[Preloaded]:
    readable = readable_ids(actor, [row.memory_id for row in rows]) if rows else set()
    return [row for row in rows if row.memory_id in readable]


def stable_ids(actor: Actor, persona_id: UUID) -> list[UUID]:
    """Return the profile and the pinned memories of a persona, in the order of the set. Two queries."""
    return list(dict.fromkeys([*_profile_ids(persona_id), *_pinned_ids(actor, persona_id)]))


def _profile_ids(persona_id: UUID) -> list[UUID]:
    rows = LayerEntry.objects.filter(persona_id=persona_id, queue=EntryQueue.PROFILE, left_at=None).exclude(name="")
    return list(rows.order_by("name", "id").values_list("cube_id", flat=True))


def _pinned_ids(actor: Actor, persona_id: UUID) -> list[UUID]:
    rows = Cube.objects.visible_to(actor).filter(persona_id=persona_id, state__in=SHOWN, deleted_at=None)
    return list(rows.filter(priority__gte=PINNED).order_by("id").values_list("id", flat=True)[:MOST_PINNED])


def _open(
    actor: Actor, rows: Sequence[Preloaded], permission: Permission = Permission.MEMORY_READ
) -> list[WorkingItem]:
    """Open readable memories. Opening them counts as no use: it would keep in the set what nobody asked for."""
    if not rows:
        return []
    ids = [row.memory_id for row in rows]
    opened = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ, permission=permission, is_use=False)
    views = {view.cube.id: view for view in opened}
    return [
        WorkingItem(
            views[row.memory_id],
            row.reason,
            row.score,
            STABLE if row.reason in {"profile", "pinned"} else WORKING,
        )
        for row in rows
        if row.memory_id in views
    ]
