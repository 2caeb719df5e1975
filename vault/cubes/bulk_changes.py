"""Changes of many memories in a few statements for all of them."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db import transaction

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import DomainError, Held, NotFound, Unavailable
from governance.vocabulary import Permission
from vault.content.drafts import CubeChanges
from vault.cubes.holds import find_held_cubes
from vault.cubes.lookup import authorize_deletion, cube_target, lock_cubes
from vault.cubes.services import (
    Succession,
    amounts_take,
    authorize_sharing,
    build_next_version,
    check_version,
    cubes_hide,
    versions_write,
)
from vault.cubes.versions import present_versions
from vault.cubes.writer.builder import Resolver
from vault.models import Cube
from vault.screening.findings import findings_by_version

Failures = dict[UUID, DomainError]
CHANGING = (Permission.MEMORY_UPDATE, Permission.MEMORY_READ)


def cubes_change_ask(
    *, actor: Actor, chosen: Mapping[UUID, int | None], permissions: Sequence[Permission] = CHANGING
) -> tuple[list[Cube], Failures]:
    """Return the memories that the actor may change now, locked, and the errors of the others by id.

    chosen: each with the version that it must have; None: any. Use inside `acting`. Two queries, and one for each
    memory that rests on others. Raises Forbidden.
    """
    authorize(actor, permissions[0])
    cubes = {cube.id: cube for cube in lock_cubes(actor, chosen)}
    held = find_held_cubes(actor, cubes)
    failed: Failures = {cube_id: NotFound() for cube_id in chosen if cube_id not in cubes}
    for cube in cubes.values():
        try:
            for permission in permissions:
                authorize(actor, permission, cube_target(cube))
            if Permission.MEMORY_DELETE in permissions:
                authorize_deletion(actor, cube)
            if cube.id in held:
                raise Held
            if (expected := chosen[cube.id]) is not None:
                check_version(cube, {expected})
        except DomainError as failure:
            failed[cube.id] = failure
    return [cube for cube in cubes.values() if cube.id not in failed], failed


def cubes_delete(*, actor: Actor, chosen: Mapping[UUID, int | None]) -> tuple[list[UUID], Failures]:
    """Delete memories; return the deleted ids and the errors of the others by id. Use inside `acting`.

    Writes: Cube …, AuditEntry; deletes Posting …, Embedding ….
    """
    authorize(actor, Permission.MEMORY_DELETE)
    cubes, failed = cubes_change_ask(actor=actor, chosen=chosen, permissions=[Permission.MEMORY_DELETE])
    if cubes:
        cubes_hide(actor=actor, cubes=cubes)
    return [cube.id for cube in cubes], failed


def cubes_update(*, actor: Actor, cubes: Sequence[Cube], changes: Mapping[UUID, CubeChanges]) -> Failures:
    """Make a new version of each memory of `cubes_change_ask`; return the errors of those that were not changed.

    If an error concerns a single memory, or all together as a quota does, each is changed separately. Use inside
    `acting`. Raises Unavailable.
    Writes: Cube …, CubeVersion …, Posting …, PiiFinding …, Review …, Namespace?, AuditEntry …, OutboxEvent ….
    """
    authorize(actor, Permission.MEMORY_UPDATE)
    if not cubes:
        return {}
    try:
        with transaction.atomic():
            _update_together(actor, cubes, changes)
            return {}
    except Unavailable:
        raise
    except DomainError as failure:
        if len(cubes) == 1:
            return {cubes[0].id: failure}
    failed: Failures = {}
    for cube in cubes:
        again, refused = cubes_change_ask(actor=actor, chosen={cube.id: None})  # reloaded: the attempt changed the row
        failed |= refused or cubes_update(actor=actor, cubes=again, changes=changes)
    return failed


def _update_together(actor: Actor, cubes: Sequence[Cube], changes: Mapping[UUID, CubeChanges]) -> None:
    resolver = Resolver(actor, Permission.MEMORY_CREATE)
    before = {version.cube_id: version for version in present_versions(cubes)}
    resolver.findings = findings_by_version([version.id for version in before.values()])
    built: list[Succession] = []
    for cube in cubes:
        authorize_sharing(actor, cube, changes[cube.id])
        version = build_next_version(resolver, cube, before[cube.id], changes[cube.id], "")
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(version.cube))
        built.append((version, before[cube.id]))
    amounts_take(actor, built)
    versions_write(actor=actor, built=built)
