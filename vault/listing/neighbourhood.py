"""The neighbourhood of a memory, a person or a topic: memories near it over links that the reader may follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from uuid import UUID

from django.db.models import Case, When

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from governance.vocabulary import Permission, Verb
from vault.cubes.as_of import as_of_condition
from vault.cubes.selectors import CubeView, cubes_read
from vault.cubes.visibility import exceptions_of
from vault.graph.walks import STEPS_OVER, Reach, named_cubes, near_cubes
from vault.index import marks
from vault.lexicon.entities import find_asked_entities
from vault.models import Cube, CubeLink, Namespace
from vault.models.cube import CubeQuerySet
from vault.retrieval.queries import SHOWN
from vault.vocabulary import LinkKind, Source

MOST = 120  # memories of one picture
NEWEST = 100  # memories that are shown where nothing is asked for, the own ones before those of packs
TAGGED = 60  # memories that bear the centre as a tag
LONGEST = 200


@dataclass(frozen=True)
class Neighbourhood:
    """Near memories. views: the nearest first; links: between these; more: the number of near memories left out."""

    views: tuple[CubeView, ...]
    links: tuple[tuple[UUID, UUID, LinkKind], ...]
    more: int


def neighbourhood_get(
    *, actor: Actor, centre: str = "", memory_id: UUID | None = None, at: datetime | None = None
) -> Neighbourhood:
    """Return the memories near `centre` (names, or a topic) or near one memory; without either, the newest.

    at: only memories known and valid at that time. Raises Forbidden; Invalid; KeyUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    if len(centre) > LONGEST or "\x00" in centre:
        raise Invalid(errors=[FieldError("around", f"at most {LONGEST} characters, and no NUL")])
    with acting(actor):
        visible = _select_visible(actor, at)
        ranks = _rank_memories(actor, visible, centre, memory_id)
        nearest = nlargest(MOST, ranks, key=lambda cube_id: (ranks[cube_id], cube_id.int))
        shown = set(visible.filter(id__in=nearest).values_list("id", flat=True))
        ids = [cube_id for cube_id in nearest if cube_id in shown]
        views = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_LISTED, is_use=False, as_of=at)
        rows = CubeLink.objects.filter(source_id__in=ids, target_id__in=ids, kind__in=STEPS_OVER).order_by("id")
        links = tuple(
            (source_id, other, LinkKind(kind))
            for source_id, other, kind in rows.values_list("source_id", "target_id", "kind")
        )
        return Neighbourhood(tuple(views), links, max(0, len(ranks) - len(nearest)))


def _select_visible(actor: Actor, at: datetime | None) -> CubeQuerySet:
    rows = Cube.objects.visible_to(actor).filter(state__in=SHOWN)
    return rows if at is None else rows.filter(as_of_condition(at))


def _rank_memories(actor: Actor, visible: CubeQuerySet, centre: str, memory_id: UUID | None) -> Mapping[UUID, float]:
    seeds = _find_seeds(actor, visible, centre, memory_id)
    return (
        near_cubes(actor, seeds=seeds, among=_reachable_rows(actor), visible=visible) if centre or memory_id else seeds
    )


def _find_seeds(actor: Actor, visible: CubeQuerySet, centre: str, memory_id: UUID | None) -> Mapping[UUID, float]:
    if memory_id is not None:
        return dict.fromkeys(visible.filter(id=memory_id).values_list("id", flat=True), 1.0)
    if centre:
        maker = token_maker(actor.tenant_id)
        asked = [marks.entity_mark(maker, name) for name in find_asked_entities(centre)]
        named = named_cubes(actor, entity_marks=asked, among=_reachable_rows(actor), visible=visible)
        tagged = visible.filter(tags__contains=[centre.strip()]).order_by("-id").values_list("id", flat=True)[:TAGGED]
        return dict.fromkeys(tagged, 1.0) | named
    is_of_pack = Case(When(source=Source.PACK, then=1), default=0)
    newest = visible.order_by(is_of_pack, "-id").values_list("id", flat=True)[:NEWEST]
    return {cube_id: 1.0 / (1 + place) for place, cube_id in enumerate(newest)}


def _reachable_rows(actor: Actor) -> Reach:
    visible_namespaces = Namespace.objects.visible_to(actor).without_chats()
    return Reach(
        list(visible_namespaces.values_list("id", flat=True)), exceptions_of(actor, lambda: visible_namespaces)
    )
