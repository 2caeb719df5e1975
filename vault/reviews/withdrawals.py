"""Derived memories with a withdrawn source: each is withheld until a person keeps or deletes it.

A source is withdrawn by a call or by its expiry, and may come back. So listing the reviews first updates them by the
present state of the sources.
"""

from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from governance.access.decisions.rules import sees_private
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.vocabulary import Permission
from vault.models import Cube, CubeOrigin, CubeSource, CubeVersion, Review
from vault.models.cube import CubeQuerySet
from vault.vocabulary import ReviewKind, ReviewStatus, Source, SourceKind

ORIGIN_IN_USE = CubeOrigin.objects.filter(derived=OuterRef("cube_id"), pk=OuterRef("source_id"), stands=True)
WITHHELD = frozenset({ReviewKind.SOURCE_WITHDRAWN, ReviewKind.QUARANTINE})  # kinds of what is read in the inbox alone
UNDECIDED = {"status": ReviewStatus.OPEN, "decided_at": None, "decided_kind": "", "decided_by": None}


def select_withheld(actor: Actor) -> CubeQuerySet:
    """Return the derived memories that the actor could read if no source were withdrawn. Answers in chats get no
    review."""
    lost = CubeSource.objects.filter(cube_id=OuterRef("pk"), kind=SourceKind.TEXT).exclude(Exists(ORIGIN_IN_USE))
    derived = Cube.objects.stored().reached_by(actor).filter(has_sources=True).exclude(source=Source.CHAT)
    return derived.filter(Exists(lost))


def select_for_decision(actor: Actor) -> CubeQuerySet:
    """Return the derived memories that the actor may read and keep, because it may read each source, withdrawn or not.

    The readers of a purged source are unknown: then only the text's owner and actors who read private memories may
    decide.
    """
    sources = CubeSource.objects.filter(cube_id=OuterRef("pk")).exclude(kind=SourceKind.QUOTE)
    present = CubeOrigin.objects.filter(derived=OuterRef("cube_id"), pk=OuterRef("source_id"))
    closed = sources.filter(Exists(present)).exclude(Exists(present.reached_by(actor)))
    purged = sources.exclude(Exists(present))
    rows = Cube.objects.stored().reached_by(actor).exclude(Exists(closed))
    return rows if sees_private(actor) else rows.filter(Q(owner_id=actor.member_id) | ~Exists(purged))


def withdrawn_refresh(*, actor: Actor) -> None:
    """Open a review for each memory that is withheld now, and close the reviews of memories that are no longer
    withheld.

    Raises Forbidden. Writes: Review ….
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        kind = ReviewKind.SOURCE_WITHDRAWN
        versions = CubeVersion.objects.filter(cube__in=select_withheld(actor), number=F("cube__version"))
        of_withheld = Review.objects.filter(kind=kind, version__in=versions)
        of_withheld.exclude(status=ReviewStatus.OPEN).update(**UNDECIDED)
        known = Review.objects.filter(kind=kind, version_id=OuterRef("pk"))
        new = [
            Review(
                tenant_id=version.tenant_id,
                kind=kind,
                cube_id=version.cube_id,
                version=version,
                status=ReviewStatus.OPEN,
            )
            for version in versions.exclude(Exists(known)).only("id", "tenant_id", "cube_id")
        ]
        Review.objects.bulk_create(new, ignore_conflicts=True)
        back = Review.objects.filter(kind=kind, status=ReviewStatus.OPEN, cube__in=Cube.objects.visible_to(actor))
        back.update(status=ReviewStatus.SUPERSEDED, decided_at=Now())


def withdrawn_locate(actor: Actor, cube_id: UUID) -> Cube:
    """Lock and return a memory that is withheld, quarantined, or was deleted by its review.

    The caller checks the permission. Raises NotFound.
    """
    rows = Cube.objects.all().reached_by(actor).filter(id=cube_id)
    cube = rows.select_for_update(of=("self",)).select_related("namespace").first()
    if cube is None:
        raise NotFound
    return cube


def withdrawn_sources_drop(cube: Cube) -> None:
    """Remove the withdrawn sources of a memory, so that it no longer depends on them. Deletes: CubeSource …."""
    CubeSource.objects.filter(Q(cube_id=cube.id) & ~Exists(ORIGIN_IN_USE)).delete()
