"""Rows of PII findings, and of reviews of findings and quarantined memories."""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from django.db.models import Q

from governance.ids import uuid7
from governance.privacy.pii.pii_ranges import Span
from governance.vocabulary import PiiKind
from vault.content.bulk_insert import insert_rows
from vault.models import CubeVersion, PiiFinding, Review
from vault.screening.screen import Finding
from vault.screening.texts import Place
from vault.vocabulary import PiiField, ReviewKind, ReviewStatus


def findings_insert(versions: Iterable[tuple[CubeVersion, Iterable[Finding]]], *, ask: bool = True) -> None:
    """Insert the findings of versions, and a review for each version with an open finding. At most two statements.

    ask: False inserts no reviews.
    """
    found = [(version, finding) for version, findings in versions for finding in findings]
    insert_rows([_make_row(version, finding) for version, finding in found])
    open_ones = {version.id: version for version, finding in found if finding.status is ReviewStatus.OPEN}
    insert_rows([_make_review(version) for version in open_ones.values()] if ask else [])


def quarantine_ask(versions: Sequence[CubeVersion]) -> None:
    """Insert a review for each version of a quarantined memory. One statement."""
    insert_rows([_make_review(version, ReviewKind.QUARANTINE) for version in versions])


def findings_of(version: CubeVersion) -> list[Finding]:
    """Return the findings of a version, with the decisions about them."""
    return findings_by_version([version.id])[version.id]


def findings_by_version(version_ids: Collection[UUID]) -> dict[UUID, list[Finding]]:
    """Return version id → findings, with the decisions about them. One query."""
    found: dict[UUID, list[Finding]] = {version_id: [] for version_id in version_ids}
    for row in PiiFinding.objects.filter(version_id__in=version_ids).order_by("id"):
        found[row.version_id].append(finding_of(row))
    return found


def finding_of(row: PiiFinding) -> Finding:
    span = Span(PiiKind(row.kind), row.begins, row.ends, row.rule)
    return Finding(Place(PiiField(row.field), row.leaf, span), row.detector, ReviewStatus(row.status))


def reviews_supersede(newer: CubeVersion) -> None:
    """Close the open reviews of older versions if the newest version has one: accepting it also redacts the older
    versions."""
    asked = Review.objects.filter(cube_id=newer.cube_id, kind=ReviewKind.PII, status=ReviewStatus.OPEN)
    if asked.filter(version_id=newer.id).exists():
        asked.filter(~Q(version_id=newer.id)).update(status=ReviewStatus.SUPERSEDED)


def _make_row(version: CubeVersion, finding: Finding) -> PiiFinding:
    place = finding.place
    return PiiFinding(
        id=uuid7(),
        tenant_id=version.tenant_id,
        cube_id=version.cube_id,
        version_id=version.id,
        field=place.part,
        leaf=place.leaf,
        kind=place.span.kind,
        begins=place.span.start,
        ends=place.span.end,
        rule=place.span.rule,
        detector=finding.detector,
        status=finding.status,
    )


def _make_review(version: CubeVersion, kind: ReviewKind = ReviewKind.PII) -> Review:
    return Review(
        id=uuid7(),
        tenant_id=version.tenant_id,
        kind=kind,
        cube_id=version.cube_id,
        version_id=version.id,
        status=ReviewStatus.OPEN,
    )
