"""Taking words away for good: a whole version, or the personal data in it. Rows, numbers and hashes stay."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Now

from governance.actor import Actor
from governance.audit.services import record
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.idempotency.services import replies_forget
from governance.keys.services import token_maker
from governance.vocabulary import Permission, PiiKind, Verb
from vault.cubes.building import build_version
from vault.cubes.drafts import CubeChanges
from vault.cubes.findings import findings_of
from vault.cubes.holding import refuse_held
from vault.cubes.locating import cube_target, locate
from vault.cubes.postings import postings_delete
from vault.cubes.screening import Finding
from vault.cubes.services import check_version, version_write
from vault.cubes.texts import Texts, moved, without
from vault.cubes.words import words_open
from vault.models import Cube, CubeVersion, Embedding, PiiFinding, Review
from vault.vocabulary import ReviewStatus


def cube_redact(*, actor: Actor, cube_id: UUID, number: int, expected_versions: Collection[int] | None = None) -> Cube:
    """Blank one version: its words, tokens, tags and findings, and what was derived from them. Cannot be undone.

    The present version may be blanked too: the memory is empty then, until it is written anew.
    Raises NotFound; Forbidden; VersionConflict; Invalid for a version that it has not.
    Writes: CubeVersion, Cube?, Review?, AuditEntry; deletes Posting …, Embedding?, PiiFinding ….
    """
    with acting(actor):
        cube = locate_for_redacting(actor, cube_id, expected_versions)
        version = CubeVersion.objects.filter(cube=cube, number=number).first()
        if version is None:
            raise Invalid(errors=[FieldError("version", f"this memory has the versions 1 to {cube.version}")])
        _blank(actor, cube, [version])
    return cube


def cube_redact_findings(
    *, actor: Actor, cube_id: UUID, redact_history: bool = True, expected_versions: Collection[int] | None = None
) -> Cube:
    """Make a version with placeholders for the open findings of the present one; then blank all earlier versions.

    Without `redact_history` they keep their words. What was decided to be no personal data stays as it is.
    Raises NotFound; Forbidden; VersionConflict. Writes: as a change of the memory does, and as `cube_redact`.
    """
    with acting(actor):
        cube = locate_for_redacting(actor, cube_id, expected_versions)
        before = CubeVersion.objects.get(cube=cube, number=cube.version)
        findings = findings_of(before)
        opened = [one for one in findings if one.status is ReviewStatus.OPEN]
        if any(one.place.span.kind is not PiiKind.UNCHECKED for one in opened):
            cube = _write_without(actor, cube, before, findings, opened)
            if redact_history:
                _blank(actor, cube, list(CubeVersion.objects.filter(cube=cube, number__lt=F("cube__version"))))
    return cube


def cube_redact_ask(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> None:
    """What stands against a redaction itself. Raises NotFound; Forbidden; VersionConflict."""
    with acting(actor):
        locate_for_redacting(actor, cube_id, expected_versions)


def locate_for_redacting(actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> Cube:
    """The cube, locked, if the actor may both change it and take its words away. Raises NotFound; Forbidden; Held."""
    cube = locate(actor, cube_id, lock=True)
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    authorize(actor, Permission.MEMORY_DELETE, cube_target(cube))
    refuse_held(actor, [cube.id])
    if expected_versions is not None:
        check_version(cube, expected_versions)
    return cube


def _write_without(
    actor: Actor, cube: Cube, before: CubeVersion, findings: Sequence[Finding], opened: Sequence[Finding]
) -> Cube:
    places = [one.place for one in opened if one.place.span.kind is not PiiKind.UNCHECKED]
    words = words_open(tenant_id=cube.tenant_id, cube_id=cube.id, number=before.number, blob=before.sealed)
    texts = Texts(words.content, words.title, words.metadata, tuple(cube.tags), words.speaker)
    clean = without(texts, places)
    changes = CubeChanges(
        content=clean.content, title=clean.title, metadata=clean.metadata, tags=clean.tags, speaker=clean.speaker
    )
    kept = [replace(one, place=moved(one.place, places)) for one in findings if one not in opened]
    built = build_version(
        actor=actor, cube=cube, before=before, changes=changes, reason="personal data redacted", findings=kept
    )
    version_write(actor=actor, built=replace(built, redacted=len(places)), before=before)
    return built.cube


def _blank(actor: Actor, cube: Cube, versions: Sequence[CubeVersion]) -> None:
    full = [version for version in versions if version.sealed]
    ids = [version.id for version in full]
    for version in full:
        if version.number == cube.version:
            _empty(cube, version)
    CubeVersion.objects.filter(id__in=ids).update(sealed=b"", terms=[], tags=[])
    PiiFinding.objects.filter(version_id__in=ids).delete()
    Review.objects.filter(version_id__in=ids, status__in=[ReviewStatus.OPEN, ReviewStatus.SUPERSEDED]).update(
        status=ReviewStatus.ACCEPTED, decided_at=Now(), decided_kind=actor.principal_kind, decided_by=actor.principal_id
    )
    Embedding.objects.filter(cube_id=cube.id, version__in=[version.number for version in full]).delete()
    replies_forget(actor=actor, object_ids=[cube.id])
    for version in full:
        record(
            actor=actor,
            verb=Verb.MEMORY_REDACTED,
            object_type="memory",
            object_ids=[cube.id],
            version=version.number,
            before_hash=bytes(version.hash),
            after_hash=bytes(version.hash),  # it stays, so that the chain of versions does
        )


def _empty(cube: Cube, version: CubeVersion) -> None:
    """What the cube itself knows by the words of its present version."""
    cube.content_hash = token_maker(cube.tenant_id).hash("")
    cube.tags, cube.speaker_marks, cube.entity_marks = [], [], []
    cube.token_count = cube.term_count = 0
    cube.mentions_time, cube.asks = False, 0.0
    cube.save(
        update_fields=[
            "content_hash",
            "tags",
            "speaker_marks",
            "entity_marks",
            "token_count",
            "term_count",
            "mentions_time",
            "asks",
        ]
    )
    postings_delete(cube.id, version.terms)
