"""Changes of one memory with an aim of their own: a move to another namespace, a rollback to an earlier version."""

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
from vault.cubes.versions import versions_visible
from vault.cubes.writer.building import changed_reading
from vault.cubes.writer.prepared import Reading, note_reading, stored_texts_prepared, texts_prepared
from vault.models import Cube, CubeVersion
from vault.screening.screen import EVERYWHERE
from vault.vocabulary import SemanticType, Sensitivity


def cube_change_ask(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> Cube:
    """The memory, locked, if the actor may change it now. Use inside `acting`.

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
    with stored_texts_prepared(actor=actor, cube_ids=[cube_id], screened=EVERYWHERE), acting(actor):
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

    Place, persona, data subject and expiry stay as they are. Raises as `cube_update`; Invalid where the
    actor reads no such version; Conflict where its words were removed. Writes as `cube_update`.
    """
    with earlier_texts_prepared(actor=actor, cube_id=cube_id, number=number, reason=reason), acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        return cube_update(
            actor=actor,
            cube_id=cube_id,
            expected_versions={cube.version},
            changes=_as_in(actor, cube, number),
            reason=_reason(number, reason),
        )


@contextmanager
def earlier_texts_prepared(*, actor: Actor, cube_id: UUID, number: int, reason: str = "") -> Iterator[None]:
    """Read the texts of a version, and the reason, before the transaction of `cube_rollback`.

    Raises KeyUnavailable; Unavailable.
    """

    def find() -> list[Reading]:
        with acting(actor):
            cube = locate(actor, cube_id)
            authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
            before = CubeVersion.objects.get(cube=cube, number=cube.version)
            changes = _as_in(actor, cube, number)
        return [changed_reading(cube, before, changes), note_reading(_reason(number, reason))]

    with texts_prepared(actor.tenant_id, find):
        yield


def _reason(number: int, given: str) -> str:
    return given or f"Rolled back to version {number}"


def _as_in(actor: Actor, cube: Cube, number: int) -> CubeChanges:
    """As the actor reads that version: a passage that it quotes becomes a text of this memory's own."""
    version = versions_visible(actor, cube).filter(number=number).first()
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
