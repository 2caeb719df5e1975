"""Permanent removal of the text of versions and of its copies. Rows, numbers and hashes stay."""

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from governance.actor import Actor
from governance.audit.services import record
from governance.idempotency.services import replies_forget
from governance.keys.services import token_maker
from governance.vocabulary import Verb
from vault.content.blobs import blobs_forget
from vault.embeddings.vectors import embeddings_delete
from vault.index.postings import postings_delete
from vault.models import Cube, CubeSource, CubeVersion, PiiFinding, Review
from vault.models.cube import CubeQuerySet
from vault.vocabulary import ReviewKind, ReviewStatus, Source, SourceKind


def extracts_of(source_id: UUID) -> CubeQuerySet:
    """Return the memories without a hold that repeat a part of this memory."""
    rows = CubeSource.objects.filter(source_id=source_id, kind=SourceKind.EXTRACT)
    return Cube.objects.free().filter(id__in=rows.values("cube_id"))


def copies_blank(actor: Actor, source_id: UUID, numbers: Collection[int]) -> None:
    """Remove the extracts and model answers that were made from versions whose text is removed.

    Held texts and other derived texts stay, but nobody reads them until a review. Writes: as `versions_blank`.
    """
    rows = CubeSource.objects.filter(source_id=source_id, version__in=numbers).exclude(kind=SourceKind.QUOTE)
    lost = rows.filter(Q(kind=SourceKind.EXTRACT) | Q(cube__source=Source.CHAT))
    cubes = Cube.objects.free().filter(id__in=lost.values("cube_id")).order_by("id")
    for cube in cubes.select_for_update():
        versions_blank(actor, cube, list(CubeVersion.objects.filter(cube=cube)))


def versions_blank(actor: Actor, cube: Cube, versions: Sequence[CubeVersion]) -> None:
    """Remove the text of versions of one cube, and what was derived from it.

    Writes: CubeVersion …, Cube?, Review?, AuditEntry …; deletes Posting …, Embedding?, PiiFinding ….
    """
    full = [version for version in versions if version.sealed]
    ids = [version.id for version in full]
    for version in full:
        if version.number == cube.version:
            _clear_cube(cube, version)
    blobs_forget(actor, cube, full)
    CubeVersion.objects.filter(id__in=ids).update(sealed=b"", terms=[], tags=[])
    PiiFinding.objects.filter(version_id__in=ids).delete()
    reviews = Review.objects.filter(version_id__in=ids)
    texts = reviews.filter(kind__in=[ReviewKind.FEEDBACK, ReviewKind.SYNC], status=ReviewStatus.OPEN)
    texts.update(status=ReviewStatus.SUPERSEDED, decided_at=Now(), sealed=b"")
    undecided = reviews.filter(status__in=[ReviewStatus.OPEN, ReviewStatus.SUPERSEDED])
    # A review of two memories is about what they state now.
    undecided.filter(other=None).exclude(kind__in=[ReviewKind.FEEDBACK, ReviewKind.SYNC]).update(
        status=ReviewStatus.ACCEPTED, decided_at=Now(), decided_kind=actor.principal_kind, decided_by=actor.principal_id
    )
    embeddings_delete(cube.tenant_id, [cube.id], [version.number for version in full])
    replies_forget(actor=actor, object_ids=[cube.id])
    for version in full:
        record(
            actor=actor,
            verb=Verb.MEMORY_REDACTED,
            object_type="memory",
            object_ids=[cube.id],
            version=version.number,
            before_hash=bytes(version.hash),
            after_hash=bytes(version.hash),  # unchanged, so that the chain of versions stays valid
        )


def _clear_cube(cube: Cube, version: CubeVersion) -> None:
    """Clear the columns and postings of the cube that were computed from the text of its current version."""
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
