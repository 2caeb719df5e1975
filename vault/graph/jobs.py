"""Links between cubes, made after every write, by the event that also makes the vectors."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q

from governance.actor import Actor
from governance.database import acting
from governance.keys.services import token_maker
from governance.outbox.routes import Payload, Write
from vault.cubes.jobs import ids_of
from vault.graph.links import links_insert
from vault.graph.neighbours import (
    LinkableCube,
    linkable_cubes,
    make_statement,
    next_in_session,
    open_words,
    previous_in_session,
    sharing_words,
)
from vault.graph.rules import Link, LinkContext, LinkPolicy, RuleLinks, Statement
from vault.models import Cube, CubeLink
from vault.vocabulary import LinkKind

DEFAULT_POLICY: LinkPolicy = RuleLinks()
MADE = (LinkKind.FOLLOWS, LinkKind.CAUSES, LinkKind.CONTRADICTS)  # lineage is not ours


@dataclass(frozen=True)
class _Gathered:
    """The cubes to link, oldest first, at the version of the event, and their neighbours."""

    versions: dict[UUID, int]
    statements: dict[UUID, Statement]  # of the cubes and of their neighbours
    before: dict[UUID, UUID]
    similar: dict[UUID, frozenset[UUID]]


def cubes_link(actor: Actor, payloads: Sequence[Payload], policy: LinkPolicy = DEFAULT_POLICY) -> Write:
    """Link written cubes, replacing the links that they had made before.

    Links of lineage stay, and so do links that other cubes or people made, unless they now cross a border between
    readers. Safe to run twice. Queries: eight and the writes, for any number of cubes.
    """
    with acting(actor):
        gathered = _gather_statements(actor, ids_of(payloads))

    def write() -> None:
        touching = _load_links_of(gathered.versions)
        present = linkable_cubes(
            {*gathered.statements, *(end for link in touching for end in (link.source, link.target))}
        )
        current = [cube_id for cube_id, version in gathered.versions.items() if _is_at(present.get(cube_id), version)]
        _drop_outdated(set(current), touching, present)
        wanted = [link for link in _decide_links(gathered, current, policy) if _is_within(link, present)]
        links_insert(actor.tenant_id, dict.fromkeys(wanted))

    return write


def _gather_statements(actor: Actor, cube_ids: Sequence[UUID]) -> _Gathered:
    to_link = {*cube_ids, *next_in_session(actor.tenant_id, cube_ids)}
    rows = Cube.objects.filter(id__in=to_link, deleted_at=None).select_related("namespace").order_by("id")
    words = open_words(rows)
    cubes = [cube for cube in rows if cube.id in words]
    similar = {
        cube_id: frozenset(others)
        for cube_id, others in sharing_words(token_maker(actor.tenant_id), cubes, words).items()
    }
    before = previous_in_session(cubes)
    neighbours = {*before.values()}.union(*similar.values())
    others = Cube.objects.filter(id__in=neighbours - words.keys(), deleted_at=None).select_related("namespace")
    opened: set[UUID] = set().union(*similar.values())
    words |= open_words([cube for cube in others if cube.id in opened])
    statements = {cube.id: make_statement(cube, words.get(cube.id)) for cube in [*cubes, *others]}
    return _Gathered({cube.id: cube.version for cube in cubes}, statements, before, similar)


def _is_at(now: LinkableCube | None, version: int) -> bool:
    """Return whether the cube is unchanged since it was read; if not, the event of its newer version links it."""
    return now is not None and now.version == version


def _is_within(link: Link, present: Mapping[UUID, LinkableCube]) -> bool:
    """Return whether both ends exist and the link crosses no border."""
    source, target = present.get(link.source), present.get(link.target)
    return source is not None and target is not None and source.border == target.border


def _load_links_of(cube_ids: Collection[UUID]) -> "dict[Link, list[Any]]":
    """Return the links of these cubes that this job maintains, each with its id and whether a person made it."""
    at_an_end = Q(source_id__in=cube_ids) | Q(target_id__in=cube_ids)
    columns = ("source_id", "target_id", "kind", "id", "is_by_person")
    rows = CubeLink.objects.filter(at_an_end, kind__in=MADE).values_list(*columns)
    return {Link(source, target, LinkKind(kind)): found for source, target, kind, *found in rows}


def _drop_outdated(
    current: Collection[UUID], touching: Mapping[Link, list[Any]], present: Mapping[UUID, LinkableCube]
) -> None:
    """Delete the computed links that these cubes had made, and links that would cross a border."""
    outdated = [
        link_id
        for link, (link_id, is_by_person) in touching.items()
        if (_made_by(link, current) and not is_by_person) or not _is_within(link, present)
    ]
    CubeLink.objects.filter(id__in=outdated).delete()


def _made_by(link: Link, cube_ids: Collection[UUID]) -> bool:
    """Return whether one of the cubes makes a link: the source; for a cause its target, for a contradiction either."""
    if link.kind == LinkKind.CONTRADICTS:
        return link.source in cube_ids or link.target in cube_ids
    return (link.target if link.kind == LinkKind.CAUSES else link.source) in cube_ids


def _decide_links(gathered: _Gathered, current: Iterable[UUID], policy: LinkPolicy) -> list[Link]:
    """Return the links that the policy makes, cube by cube, oldest first."""
    decided: list[Link] = []
    for cube_id in current:
        statement = gathered.statements[cube_id]
        before = (
            _select_within_border(gathered, statement, [gathered.before[cube_id]]) if cube_id in gathered.before else []
        )
        similar = _select_within_border(gathered, statement, gathered.similar.get(cube_id, frozenset()))
        decided += policy.links(statement, LinkContext(before=before[0] if before else None, similar=similar))
    return decided


def _select_within_border(gathered: _Gathered, statement: Statement, cube_ids: Iterable[UUID]) -> list[Statement]:
    """Return the gathered statements of these cubes that have the same border as `statement`."""
    found = (gathered.statements.get(cube_id) for cube_id in sorted(cube_ids))
    return [other for other in found if other is not None and other.border == statement.border]
