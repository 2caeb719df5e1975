"""Selectors of holds. Managers of holds see the terms of a legal hold; readers of a memory see its freezes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import NotFound
from governance.keys.services import GENERAL, subject_scope
from governance.models import DataSubject
from governance.pages import Pages
from governance.privacy.services import SubjectView, subject_view
from governance.vocabulary import Permission, Verb
from vault.cubes.holds import terms_open
from vault.cubes.lookup import locate_readable
from vault.models import CubeVersion, Hold, HoldCube, HoldReleaseApproval, MemoryForm
from vault.vocabulary import HoldKind, HoldStatus

LEGAL = (HoldKind.MEMORY, HoldKind.QUERY, HoldKind.SUBJECT)


@dataclass(frozen=True)
class Approval:
    member_id: UUID
    name: str
    at: datetime


@dataclass(frozen=True)
class HoldView:
    """A decrypted hold. It covers memory_id, the matches of filters, or subject; covered: the number of its cubes so
    far.
    """

    id: UUID
    kind: HoldKind
    status: HoldStatus
    reason: str = field(repr=False)
    memory_id: UUID | None
    filters: dict[str, Any] | None = field(repr=False)
    subject: SubjectView | None
    covered: int
    maker_id: UUID
    maker_name: str
    created_at: datetime
    approvals: tuple[Approval, ...]


@dataclass(frozen=True)
class Keeping:
    """The holds of one memory, for its readers; reasons of legal holds are left out."""

    freezes: tuple[HoldView, ...]
    legal: bool

    @property
    def held(self) -> bool:
        return self.legal or bool(self.freezes)


def holds_list(
    *, actor: Actor, status: HoldStatus | None = None, at: datetime | None = None, pages: Pages
) -> list[HoldView]:
    """Return the legal holds, newest first. at: those that stood at a time, as they were then; status: of now.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.HOLD_MANAGE)
    with acting(actor):
        every = Hold.objects.all() if at is None else Hold.objects.active_at(at)
        rows = every.with_active_flag().filter(tenant_id=actor.tenant_id, kind__in=LEGAL)
        page = pages.take(rows.filter(_status_condition(status)).select_related("maker").order_by("-id"))
        record(actor=actor, verb=Verb.HOLD_READ, object_type="hold", object_ids=[row.id for row in page])
        return hold_views(page, at=at)


def hold_get(*, actor: Actor, hold_id: UUID) -> HoldView:
    """Return a legal hold. Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry."""
    with acting(actor):
        row = hold_locate(actor, hold_id)
        record(actor=actor, verb=Verb.HOLD_READ, object_type="hold", object_ids=[row.id])
        return hold_views([row])[0]


def cube_holds(*, actor: Actor, cube_id: UUID) -> Keeping:
    """Return the holds of a memory that the actor may read. Raises NotFound; Forbidden; KeyUnavailable."""
    with acting(actor):
        locate_readable(actor, cube_id)
        rows = list(_active_holds(cube_id).select_related("maker"))
        freezes = tuple(hold_views([row for row in rows if row.kind == HoldKind.FREEZE]))
        return Keeping(freezes=freezes, legal=len(freezes) < len(rows))


def select_freezes(cube_id: UUID) -> QuerySet[Hold]:
    """Return the freezes that apply to a cube; within the tenant's transaction."""
    return _active_holds(cube_id).filter(kind=HoldKind.FREEZE)


def hold_locate(actor: Actor, hold_id: UUID) -> Hold:
    """Return a legal hold of the actor's tenant, with `stands`. Raises NotFound; Forbidden."""
    rows = Hold.objects.with_active_flag().filter(tenant_id=actor.tenant_id, id=hold_id, kind__in=LEGAL)
    row = rows.select_related("maker").first()
    if row is None:
        raise NotFound
    authorize(actor, Permission.HOLD_MANAGE, Target("hold", row.id, row.tenant_id))
    return row


def hold_views(rows: Sequence[Hold], *, at: datetime | None = None) -> list[HoldView]:
    """Return decrypted holds that their reader may read, as they were at a time; None: now. Four queries for any
    number. Raises KeyUnavailable.
    """
    until = Q() if at is None else Q(created_at__lte=at)
    approvals = _load_approvals(rows, until)
    covered = _count_covered(rows, until)
    single = [row.id for row in rows if row.kind in {HoldKind.FREEZE, HoldKind.MEMORY}]
    memories = dict(HoldCube.objects.filter(hold_id__in=single).values_list("hold_id", "cube_id"))
    subjects = DataSubject.objects.in_bulk([row.subject_id for row in rows if row.subject_id])
    return [
        _make_view(row, memories.get(row.id), subjects.get(row.subject_id), covered.get(row.id, 0), approvals[row.id])
        for row in rows
    ]


def is_key_needed(*, actor: Actor, scope: str) -> bool:
    """Return whether a held row is sealed with the key of `scope` (governance.keys.services), which must then be kept.

    Called before a key is destroyed, in the transaction that records it. Raises Forbidden.
    """
    authorize(actor, Permission.HOLD_MANAGE)
    with acting(actor):
        active = Hold.objects.active().filter(tenant_id=actor.tenant_id)
        if scope == GENERAL and active.exists():
            return True  # what a hold is over is sealed under it too
        subjects = {
            subject_scope(subject_id): subject_id
            for subject_id in active.values_list("subject_id", flat=True)
            if subject_id
        }
        if scope in subjects:
            return True
        held = HoldCube.objects.filter(hold_id__in=active.values("id")).values("cube_id")
        kind, _, name = scope.partition(":")
        payloads = MemoryForm.objects.filter(tenant_id=actor.tenant_id, cube_id__in=held)
        if kind == "subject" and payloads.filter(subjects__contains=[UUID(name)]).exists():
            return True
        return _has_rows_sealed_under(scope, CubeVersion.objects.filter(tenant_id=actor.tenant_id, cube_id__in=held))


def _has_rows_sealed_under(scope: str, versions: QuerySet[CubeVersion]) -> bool:
    """Return whether versions are sealed with the key of `scope` (see `vault.content.words.key_scope`)."""
    kind, _, name = scope.partition(":")
    if kind == "subject":
        return versions.filter(subject_id=UUID(name)).exists()
    if kind == "member":
        return versions.filter(subject=None, persona__member_id=UUID(name)).exists()
    if scope == GENERAL:
        return versions.filter(subject=None).filter(Q(persona=None) | Q(persona__member=None)).exists()
    return versions.exists()  # the key of tokens, by which everything is found, and whatever is not known here


def _active_holds(cube_id: UUID) -> QuerySet[Hold]:
    covering = HoldCube.objects.filter(cube_id=cube_id).values("hold_id")
    return Hold.objects.active().filter(id__in=covering).order_by("id")


def _make_view(
    row: Hold, memory_id: UUID | None, subject: DataSubject | None, covered: int, approvals: Sequence[Approval]
) -> HoldView:
    kind, terms = HoldKind(row.kind), terms_open(row)
    return HoldView(
        id=row.id,
        kind=kind,
        status=_hold_status(kind, len(approvals)),
        reason=terms.reason,
        memory_id=memory_id,
        filters=terms.filters,
        subject=subject_view(subject) if subject else None,
        covered=covered,
        maker_id=row.maker_id,
        maker_name=row.maker.display_name,
        created_at=row.created_at,
        approvals=tuple(approvals),
    )


def _load_approvals(rows: Sequence[Hold], until: Q) -> dict[UUID, list[Approval]]:
    found: dict[UUID, list[Approval]] = {row.id: [] for row in rows}
    for approval in HoldReleaseApproval.objects.filter(until, hold__in=rows).select_related("member").order_by("id"):
        found[approval.hold_id].append(Approval(approval.member_id, approval.member.display_name, approval.created_at))
    return found


def _count_covered(rows: Sequence[Hold], until: Q) -> dict[UUID, int]:
    counted = HoldCube.objects.filter(until, hold__in=rows).values("hold_id").annotate(cubes=Count("id"))
    return dict(counted.values_list("hold_id", "cubes"))


def _hold_status(kind: HoldKind, approvals: int) -> HoldStatus:
    if kind is HoldKind.FREEZE:
        return HoldStatus.RELEASED if approvals else HoldStatus.ACTIVE
    return (HoldStatus.ACTIVE, HoldStatus.RELEASING, HoldStatus.RELEASED)[min(approvals, 2)]


def _status_condition(status: HoldStatus | None) -> Q:
    approved = HoldReleaseApproval.objects.values("hold_id")
    if status is None:
        return Q()
    if status is HoldStatus.RELEASED:
        return Q(stands=False)
    return Q(stands=True, id__in=approved) if status is HoldStatus.RELEASING else Q(stands=True) & ~Q(id__in=approved)
