"""Redaction of a whole version, or of the personal data in a memory. Rows, numbers and hashes stay."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

from django.db.models import F

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission, PiiKind
from vault.content.drafts import CubeChanges
from vault.cubes.holds import refuse_held
from vault.cubes.lookup import cube_target, locate
from vault.cubes.services import check_version, version_write
from vault.cubes.text_removal import copies_blank, versions_blank
from vault.cubes.writer.builder import build_version
from vault.cubes.writer.prepared_texts import Reading, prepare_texts, texts_of_version
from vault.models import Cube, CubeVersion
from vault.screening.findings import findings_of
from vault.screening.screen import Finding
from vault.screening.texts import Place, redact_places, shift_places
from vault.vocabulary import ReviewStatus


def cube_redact(*, actor: Actor, cube_id: UUID, number: int, expected_versions: Collection[int] | None = None) -> Cube:
    """Remove the text, index terms, tags and findings of one version, and all copies of the text, irrevocably.

    If it is the current version, the memory is empty until somebody writes a new version.
    Raises NotFound; Forbidden; VersionConflict; Invalid for a version that does not exist.
    Writes: CubeVersion, Cube?, Review?, AuditEntry; deletes Posting …, Embedding?, PiiFinding ….
    """
    with acting(actor):
        cube = locate_for_redaction(actor, cube_id, expected_versions)
        version = CubeVersion.objects.filter(cube=cube, number=number).first()
        if version is None:
            raise Invalid(errors=[FieldError("version", f"this memory has the versions 1 to {cube.version}")])
        versions_blank(actor, cube, [version])
        copies_blank(actor, cube.id, [version.number])
    return cube


def cube_redact_findings(
    *, actor: Actor, cube_id: UUID, redact_history: bool = True, expected_versions: Collection[int] | None = None
) -> Cube:
    """Create a version with placeholders instead of the open findings, then remove the text of all earlier versions.

    redact_history: False leaves the earlier versions as they are. The text of rejected findings stays. The new text is
    prepared before the transaction, unless the caller has opened one.
    Raises NotFound; Forbidden; VersionConflict. Writes: as a change of the memory does, and as `cube_redact`.
    """
    with prepare_clean_texts(actor=actor, cube_id=cube_id), acting(actor):
        cube = locate_for_redaction(actor, cube_id, expected_versions)
        before = CubeVersion.objects.get(cube=cube, number=cube.version)
        findings = findings_of(before)
        opened = [finding for finding in findings if finding.status is ReviewStatus.OPEN]
        if any(finding.place.span.kind is not PiiKind.UNCHECKED for finding in opened):
            cube = _write_clean_version(actor, cube, before, findings, opened)
            if redact_history:
                earlier = list(CubeVersion.objects.filter(cube=cube, number__lt=F("cube__version")))
                versions_blank(actor, cube, earlier)
                copies_blank(actor, cube.id, [version.number for version in earlier])
    return cube


def cube_redact_ask(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> None:
    """Check that a redaction is possible. Raises NotFound; Forbidden; VersionConflict."""
    with acting(actor):
        locate_for_redaction(actor, cube_id, expected_versions)


def locate_for_redaction(actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> Cube:
    """Return the locked cube if the actor may change and delete it. Raises NotFound; Forbidden; Held."""
    cube = locate(actor, cube_id, lock=True)
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    authorize(actor, Permission.MEMORY_DELETE, cube_target(cube))
    refuse_held(actor, [cube.id])
    if expected_versions is not None:
        check_version(cube, expected_versions)
    return cube


@contextmanager
def prepare_clean_texts(*, actor: Actor, cube_id: UUID) -> Iterator[None]:
    """Prepare the text of `cube_redact_findings` before its transaction. Raises KeyUnavailable; Unavailable."""

    def find() -> list[Reading]:
        with acting(actor):
            cube = locate(actor, cube_id)
            authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
            before = CubeVersion.objects.get(cube=cube, number=cube.version)
            places = _checked_places(
                [finding for finding in findings_of(before) if finding.status is ReviewStatus.OPEN]
            )
        return [Reading(redact_places(texts_of_version(before), places))] if before.sealed else []

    with prepare_texts(actor.tenant_id, find):
        yield


def _checked_places(opened: Sequence[Finding]) -> list[Place]:
    return [finding.place for finding in opened if finding.place.span.kind is not PiiKind.UNCHECKED]


def _write_clean_version(
    actor: Actor, cube: Cube, before: CubeVersion, findings: Sequence[Finding], opened: Sequence[Finding]
) -> Cube:
    places = _checked_places(opened)
    clean = redact_places(texts_of_version(before), places)
    changes = CubeChanges(
        content=clean.content, title=clean.title, metadata=clean.metadata, tags=clean.tags, speaker=clean.speaker
    )
    removed = set(opened)
    others = [finding for finding in findings if finding not in removed]
    at = shift_places([finding.place for finding in others], places)
    remaining = [replace(finding, place=place) for finding, place in zip(others, at, strict=True)]
    built = build_version(
        actor=actor, cube=cube, before=before, changes=changes, reason="personal data redacted", findings=remaining
    )
    version_write(actor=actor, built=replace(built, redacted=len(places)), before=before)
    return built.cube
