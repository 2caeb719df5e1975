"""Moves of a memory to another namespace, and rollbacks to an earlier version."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid
from governance.vocabulary import Permission
from vault.content.drafts import CubeChanges
from vault.content.words import NO_WORDS
from vault.cubes.holds import refuse_held
from vault.cubes.lookup import cube_target, locate
from vault.cubes.selectors import versions_view
from vault.cubes.services import check_version, cube_update
from vault.cubes.versions import visible_versions
from vault.cubes.writer.builder import reading_of_changes
from vault.cubes.writer.prepared_texts import Reading, note_reading, prepare_stored_texts, prepare_texts
from vault.models import Cube, CubeVersion
from vault.screening.screen import EVERYWHERE
from vault.vocabulary import SemanticType, Sensitivity


def cube_change_ask(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> Cube:
    """Return the locked memory if the actor may change it now. Use inside `acting`.

    Raises, in this order: NotFound; Forbidden; Held; VersionConflict.
    """
    cube = locate(actor, cube_id, lock=True)
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    authorize(actor, Permission.MEMORY_READ, cube_target(cube))
    refuse_held(actor, [cube.id])
    if expected_versions is not None:
        check_version(cube, expected_versions)
    return cube


def cube_move(
    *,
    actor: Actor,
    cube_id: UUID,
    namespace: str,
    expected_versions: Collection[int] | None = None,
) -> Cube:
    """Move a memory to the namespace at a path, as a new version.

    Raises as `cube_update`, without PreconditionRequired. Writes as `cube_update`, and Namespace?.
    """
    with prepare_stored_texts(actor=actor, cube_ids=[cube_id], screened=EVERYWHERE), acting(actor):
        present = cube_change_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions).version
        return cube_update(
            actor=actor,
            cube_id=cube_id,
            expected_versions={present},
            changes=CubeChanges(namespace=namespace),
        )


def cube_rollback(
    *,
    actor: Actor,
    cube_id: UUID,
    number: int,
    expected_versions: Collection[int] | None = None,
    reason: str = "",
) -> Cube:
    """Make a new version with the words, tags, type and times of an earlier one.

    Namespace, persona, data subject and expiry stay as they are. Raises as `cube_update`; Invalid if the actor cannot
    read that version; Conflict if its words were removed. Writes as `cube_update`.
    """
    with prepare_earlier_texts(actor=actor, cube_id=cube_id, number=number, reason=reason), acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        return cube_update(
            actor=actor,
            cube_id=cube_id,
            expected_versions={cube.version},
            changes=_changes_to_version(actor, cube, number),
            reason=_rollback_reason(number, reason),
        )


@contextmanager
def prepare_earlier_texts(*, actor: Actor, cube_id: UUID, number: int, reason: str = "") -> Iterator[None]:
    """Prepare the texts of a version, and the reason, before the transaction of `cube_rollback`.

    Raises KeyUnavailable; Unavailable.
    """

    def find() -> list[Reading]:
        with acting(actor):
            cube = locate(actor, cube_id)
            authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
            before = CubeVersion.objects.get(cube=cube, number=cube.version)
            changes = _changes_to_version(actor, cube, number)
        return [reading_of_changes(cube, before, changes), note_reading(_rollback_reason(number, reason))]

    with prepare_texts(actor.tenant_id, find):
        yield


def _rollback_reason(number: int, given: str) -> str:
    return given or f"Rolled back to version {number}"


def _changes_to_version(actor: Actor, cube: Cube, number: int) -> CubeChanges:
    """Return the changes that restore a version as the actor reads it, with quoted passages as plain text."""
    version = visible_versions(actor, cube).filter(number=number).first()
    if version is None:
        raise Invalid(errors=[FieldError("version", "there is no such version")])
    words = versions_view(actor, [version])[0].words
    if words == NO_WORDS:
        raise Conflict(f"The words of version {number} were removed.")
    return CubeChanges(
        content=words.content,
        title=words.title,
        metadata=words.metadata,
        tags=tuple(version.tags),
        semantic_type=SemanticType(version.semantic_type),
        sensitivity=Sensitivity(version.sensitivity),
        importance=version.importance,
        priority=version.priority,
        event_time=version.event_time,
        valid_from=version.valid_from,
        valid_to=version.valid_to,
    )
