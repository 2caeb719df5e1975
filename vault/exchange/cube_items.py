"""Stored memories as items of an exchange: the versions and the lineage that the reader may see."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.privacy.services import subject_view
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import VersionView, versions_view
from vault.cubes.versions import readable_versions
from vault.cubes.visibility import visible_ids
from vault.exchange.items import Item, ItemVersion, Origin
from vault.models import Cube, CubeSource
from vault.models.cube import IS_HELD
from vault.vocabulary import Layer, NamespaceKind, SemanticType, Sensitivity, SourceKind, State

NONE_KNOWN: Mapping[UUID, int] = {}


def cube_items(
    actor: Actor,
    cube_ids: Sequence[UUID],
    known: Mapping[UUID, int] = NONE_KNOWN,
    *,
    verb: Verb = Verb.MEMORY_EXPORTED,
) -> list[tuple[Cube, Item]]:
    """Those of the memories that the actor may read, and that still have words, by id. Use inside `acting`.

    What the contract of a pack keeps is left out.

    known: of a memory the version that its reader has: the item begins behind it, at the latest with the present one.
    Raises Forbidden; KeyUnavailable. Writes: AuditEntry …. Five queries.
    """
    authorize(actor, Permission.MEMORY_READ)
    rows = Cube.objects.visible_to(actor).filter(id__in=cube_ids)
    cubes = list(rows.select_related("namespace", "subject", "persona").annotate(is_held=IS_HELD).order_by("id"))
    ids = [cube.id for cube in cubes]
    versions = readable_versions(actor).filter(cube_id__in=ids).order_by("cube_id", "number")
    present = {cube.id: cube.version for cube in cubes}
    views: dict[UUID, list[VersionView]] = defaultdict(list)
    wanted = [
        version
        for version in versions.select_related("namespace")
        if version.number > min(known.get(version.cube_id, 0), present[version.cube_id] - 1)
    ]
    for view in versions_view(actor, wanted, leaves=verb is Verb.MEMORY_EXPORTED):
        views[view.row.cube_id].append(view)
    sources = list(CubeSource.objects.filter(cube_id__in=ids).order_by("id"))
    readable = _find_readable_ids(actor, sources)
    origins: dict[UUID, list[CubeSource]] = defaultdict(list)
    for source in sources:
        if source.source_id in readable:
            origins[source.cube_id].append(source)
    record(actor=actor, verb=verb, object_type="memory", object_ids=ids)
    made = ((cube, _make_item(cube, views[cube.id], origins[cube.id])) for cube in cubes)
    return [(cube, item) for cube, item in made if item is not None]


def _find_readable_ids(actor: Actor, sources: Sequence[CubeSource]) -> set[UUID]:
    ids = {source.source_id for source in sources}
    return visible_ids(actor, ids) if ids else set()


def _make_item(cube: Any, views: Sequence[VersionView], sources: Sequence[CubeSource]) -> Item | None:
    """cube: with `is_held`. views, sources: of it, oldest first. None where the words of every version are gone.

    What expires by a policy does not say when: the policies of the other installation decide.
    """
    own = [view for view in views if view.words.content]
    if not own:
        return None
    words = own[-1].words
    return Item(
        id=str(cube.id),
        versions=tuple(_make_version(view) for view in own),
        namespace="" if cube.namespace.kind == NamespaceKind.PRIVATE else cube.namespace.path,
        subject=subject_view(cube.subject).reference or None if cube.subject else None,
        speaker=words.speaker,
        session_id=words.session_id,
        message_id=words.message_id,
        task_id=words.task_id,
        dialogue_only=cube.is_dialogue_only,
        said_at=cube.said_at,
        persona=cube.persona.name if cube.persona and not cube.persona.removed_at else "",
        layer=Layer(cube.layer),
        state=State(cube.state),
        expires_at=None if cube.expiry_policy else cube.expires_at or cube.suspended_expiry,
        held=cube.is_held,
        made_from=tuple(Origin(str(source.source_id), source.version, SourceKind(source.kind)) for source in sources),
    )


def _make_version(view: VersionView) -> ItemVersion:
    row, words = view.row, view.words
    return ItemVersion(
        content=words.content,
        title=words.title,
        tags=tuple(row.tags),
        metadata=words.metadata,
        semantic_type=SemanticType(row.semantic_type),
        sensitivity=Sensitivity(row.sensitivity),
        importance=row.importance,
        event_time=row.event_time,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        reason=row.reason,
    )
