"""Changes of many memories at once: a few statements for all of them, where each alone would take twenty."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db import transaction

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import DomainError, Held, NotFound, Unavailable
from governance.vocabulary import Permission
from vault.content.drafts import CubeChanges
from vault.cubes.holds import held_among
from vault.cubes.lookup import cube_target, locate_many
from vault.cubes.services import (
    Succession,
    amounts_take,
    ask_to_open,
    check_version,
    cubes_hide,
    next_version,
    versions_write,
)
from vault.cubes.versions import versions_present
from vault.cubes.writer.building import Resolver
from vault.models import Cube
from vault.screening.findings import findings_by_version

Failures = dict[UUID, DomainError]
CHANGING = (Permission.MEMORY_UPDATE, Permission.MEMORY_READ)


def cubes_change_ask(
    *, actor: Actor, chosen: Mapping[UUID, int | None], permissions: Sequence[Permission] = CHANGING
) -> tuple[list[Cube], Failures]:
    """Those of the memories that the actor may change now, locked, and of the others what speaks against it.

    chosen: each with the version that it must have; None: any. Use inside `acting`. Two queries, and one for each
    memory that rests on others. Raises Forbidden.
    """
    authorize(actor, permissions[0])
    cubes = {cube.id: cube for cube in locate_many(actor, chosen)}
    held = held_among(actor, cubes)
    failed: Failures = {cube_id: NotFound() for cube_id in chosen if cube_id not in cubes}
    for cube in cubes.values():
        try:
            for permission in permissions:
                authorize(actor, permission, cube_target(cube))
            if cube.id in held:
                raise Held
            if (expected := chosen[cube.id]) is not None:
                check_version(cube, {expected})
        except DomainError as failure:
            failed[cube.id] = failure
    return [cube for cube in cubes.values() if cube.id not in failed], failed


def cubes_delete(*, actor: Actor, chosen: Mapping[UUID, int | None]) -> tuple[list[UUID], Failures]:
    """`cube_delete` of many: those that were deleted, and of the others what speaks against it. Use inside `acting`.

    Writes: Cube …, AuditEntry; deletes Posting …, Embedding ….
    """
    authorize(actor, Permission.MEMORY_DELETE)
    cubes, failed = cubes_change_ask(actor=actor, chosen=chosen, permissions=[Permission.MEMORY_DELETE])
    if cubes:
        cubes_hide(actor=actor, cubes=cubes)
    return [cube.id for cube in cubes], failed


def cubes_update(*, actor: Actor, cubes: Sequence[Cube], changes: Mapping[UUID, CubeChanges]) -> Failures:
    """Make a new version of each memory of `cubes_change_ask`; returns of those that have none what speaks against it.

    Where anything speaks against one of them, or against all together as a quota does, each is changed by itself. Use
    inside `acting`. Raises Unavailable.
    Writes: Cube …, CubeVersion …, Posting …, PiiFinding …, Review …, Namespace?, AuditEntry …, OutboxEvent ….
    """
    authorize(actor, Permission.MEMORY_UPDATE)
    if not cubes:
        return {}
    try:
        with transaction.atomic():
            _update(actor, cubes, changes)
            return {}
    except Unavailable:
        raise
    except DomainError as failure:
        if len(cubes) == 1:
            return {cubes[0].id: failure}
    failed: Failures = {}
    for cube in cubes:
        again, refused = cubes_change_ask(actor=actor, chosen={cube.id: None})  # as stored: the try has changed the row
        failed |= refused or cubes_update(actor=actor, cubes=again, changes=changes)
    return failed


def _update(actor: Actor, cubes: Sequence[Cube], changes: Mapping[UUID, CubeChanges]) -> None:
    resolver = Resolver(actor, Permission.MEMORY_CREATE)
    before = {version.cube_id: version for version in versions_present(cubes)}
    resolver.findings = findings_by_version([version.id for version in before.values()])
    built: list[Succession] = []
    for cube in cubes:
        ask_to_open(actor, cube, changes[cube.id])
        one = next_version(resolver, cube, before[cube.id], changes[cube.id], "")
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(one.cube))
        built.append((one, before[cube.id]))
    amounts_take(actor, built)
    versions_write(actor=actor, built=built)
