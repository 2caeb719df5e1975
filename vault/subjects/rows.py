"""The rows about a data subject, and rows derived from them. The callers check permissions."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q, QuerySet

from vault.models import Cube, CubeSource, CubeVersion, Embedding, Hold, MemoryForm, Turn
from vault.models.cube import CubeQuerySet
from vault.subjects.rules import ErasureCounts
from vault.vocabulary import SourceKind


def versions_about(tenant_id: UUID, subject_id: UUID) -> QuerySet[CubeVersion]:
    """Return the versions about a subject that still have text: each is sealed with the subject's key."""
    return CubeVersion.objects.filter(tenant_id=tenant_id, subject_id=subject_id).exclude(sealed=b"")


def cubes_about(tenant_id: UUID, subject_id: UUID) -> CubeQuerySet:
    """Return the memories with a version about a subject, also deleted and expired ones."""
    about = versions_about(tenant_id, subject_id).values("cube_id")
    return Cube.objects.filter(tenant_id=tenant_id, id__in=about)


def subject_is_held(tenant_id: UUID, subject_id: UUID) -> bool:
    return Hold.objects.active().filter(tenant_id=tenant_id, subject_id=subject_id).exists()


def select_derived(ids: Sequence[UUID]) -> CubeQuerySet:
    """Return the memories derived from these with a text of their own."""
    made = CubeSource.objects.filter(source_id__in=ids).exclude(kind=SourceKind.QUOTE).values("cube_id")
    return Cube.objects.filter(id__in=made).exclude(id__in=ids)


def erasure_counts(subject_id: UUID, ids: Sequence[UUID]) -> ErasureCounts:
    """Count the rows that an erasure would delete with these memories, without held ones. Use inside `acting`."""
    versions = CubeVersion.objects.filter(cube_id__in=ids).filter(
        Q(cube__subject_id=subject_id) | Q(subject_id=subject_id)
    )
    derived = list(select_derived(ids).free().values_list("id", flat=True))
    terms = sum(len(terms) for terms in versions.values_list("terms", flat=True))
    return ErasureCounts(
        memories=len(ids),
        versions=versions.count(),
        vectors=Embedding.objects.filter(cube_id__in=ids).count(),
        tokens=terms,
        derived=len(derived),
        forms=MemoryForm.objects.filter(cube_id__in=derived).count(),
        turns=Turn.objects.filter(Q(question_id__in=ids) | Q(answer_id__in=ids)).count(),
    )
