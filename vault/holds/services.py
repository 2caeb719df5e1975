"""Services that freeze, hold and release memories. Rows of holds are only added; the database itself enforces them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from governance.access.decisions.rules import sees_private
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Forbidden, Invalid, SecondMemberNeeded
from governance.ids import uuid7
from governance.keys.services import token_maker
from governance.members.stand_in import refuse_stand_in
from governance.models import Member
from governance.policies.retention import retention_request
from governance.privacy.services import subject_ensure
from governance.vocabulary import Permission, Verb
from vault.cubes.filters import filter_read, filter_refuse_empty
from vault.cubes.holds import HoldTerms, cover_cubes, terms_open, terms_seal
from vault.cubes.lookup import cube_target, locate
from vault.cubes.services import check_version
from vault.holds.selectors import HoldView, hold_locate, hold_views, select_freezes
from vault.models import Cube, CubeVersion, Hold, HoldCube, HoldReleaseApproval
from vault.models.cube import CubeQuerySet
from vault.screening.screen import screen_note
from vault.vocabulary import HoldKind, HoldStatus

LONGEST_REASON = 500


@dataclass(frozen=True)
class HoldDraft:
    """A new legal hold on exactly one of: a memory, the matches of filters, all memories about a data subject.

    subject: the tenant's own reference; created if missing, since a hold may precede the first memory about a person.
    """

    reason: str = field(repr=False)
    memory_id: UUID | None = None
    filters: Mapping[str, Any] | None = field(default=None, repr=False)
    subject: str | None = field(default=None, repr=False)


def hold_create(*, actor: Actor, draft: HoldDraft) -> HoldView:
    """Prevent changes and deletion of the named memories, in any state, until two members release the hold.

    A hold on filters covers current matches and later ones; a hold on a subject all memories that ever are about it. It
    waits for the tenant's running writes, and they for it. Raises Forbidden; Invalid; NotFound; KeyUnavailable. Writes:
    Hold, HoldCube …, DataSubject?, AuditEntry.
    """
    authorize(actor, Permission.HOLD_MANAGE)
    maker = _require_member(actor)
    with acting(actor):
        hold, covers = _draft_hold(actor, draft, maker)
        filters = dict(draft.filters) if draft.filters is not None else None
        hold.sealed = terms_seal(hold, HoldTerms(reason=_check_reason(draft.reason), filters=filters))
        hold.save(force_insert=True)  # from here on no other write of the tenant is under way
        covered = cover_cubes(hold, covers)
        record(
            actor=actor,
            verb=Verb.HOLD_CREATED,
            object_type="hold",
            object_ids=[hold.id],
            detail={"kind": hold.kind, "covered": covered},
        )
        return hold_views([hold])[0]


def hold_rehearse(*, actor: Actor, draft: HoldDraft, most: int) -> tuple[int, list[UUID]]:
    """Count the memories that a hold would cover, and return at most `most` ids. Raises the errors of `hold_create`.
    Writes nothing.
    """
    authorize(actor, Permission.HOLD_MANAGE)
    with acting(actor):
        view = hold_create(actor=actor, draft=draft)
        ids = HoldCube.objects.filter(hold_id=view.id).order_by("cube_id").values_list("cube_id", flat=True)
        found = view.covered, list(ids[:most])
        transaction.set_rollback(True)
    return found


def hold_release(*, actor: Actor, hold_id: UUID) -> HoldView:
    """Approve the end of a legal hold. It ends when two different members have approved; its creator may be one.

    Approving twice changes nothing. A member that another member may control cannot approve. Raises NotFound;
    Forbidden; OwnHandNeeded; SecondMemberNeeded. Writes: HoldReleaseApproval?, AuditEntry, OutboxEvent?.
    """
    member_id = _require_member(actor)
    with acting(actor):
        hold = hold_locate(actor, hold_id)
        before = hold_views([hold])[0]
        if before.status is not HoldStatus.RELEASED:
            _refuse_single_member()
            refuse_stand_in(actor)
            if member_id not in {approval.member_id for approval in before.approvals}:
                _add_approval(hold, member_id)
        view = hold_views([hold])[0]
        released = view.status is HoldStatus.RELEASED
        verb = Verb.HOLD_RELEASED if released else Verb.HOLD_RELEASE_APPROVED
        detail = {"approvals": len(view.approvals)}
        record(actor=actor, verb=verb, object_type="hold", object_ids=[hold.id], detail=detail)
        if released:
            retention_request(actor)
    return view


def cube_freeze(*, actor: Actor, cube_id: UUID, reason: str, expected_versions: Collection[int] | None = None) -> None:
    """Freeze a memory that the actor may change. The freeze is the member's own; freezing twice changes nothing.

    reason: 1..LONGEST_REASON characters. Raises NotFound; Forbidden; VersionConflict; Invalid; KeyUnavailable;
    PiiUnavailable. Writes: Hold?, HoldCube?, AuditEntry.
    """
    maker = _require_member(actor)
    with acting(actor):
        cube = cube_freezable(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        given = screen_note(
            actor=actor,
            name="reason",
            text=_check_reason(reason),
            namespace_path=cube.namespace.path,
            sensitivity=cube.sensitivity,
        )
        if not select_freezes(cube.id).filter(maker_id=maker).exists():
            hold = Hold(id=uuid7(), tenant_id=actor.tenant_id, kind=HoldKind.FREEZE, maker_id=maker)
            hold.sealed = terms_seal(hold, HoldTerms(reason=given))
            hold.save(force_insert=True)
            cover_cubes(hold, Cube.objects.filter(id=cube.id))
            cube.refresh_from_db(fields=["version"])  # another write may have come before the hold
            if expected_versions is not None:
                check_version(cube, expected_versions)
        record(actor=actor, verb=Verb.MEMORY_FROZEN, object_type="memory", object_ids=[cube.id], version=cube.version)


def cube_unfreeze(
    *, actor: Actor, cube_id: UUID, only_own: bool = False, expected_versions: Collection[int] | None = None
) -> None:
    """End the actor's own freezes of a memory, or all of them for those who govern. Legal holds stay.

    only_own: never end the freezes of others. Raises NotFound; Forbidden; VersionConflict. Writes: HoldReleaseApproval
    …, AuditEntry, OutboxEvent?.
    """
    member_id = _require_member(actor)
    with acting(actor):
        cube = cube_freezable(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        freezes = _own_freezes(actor, cube, member_id)
        for hold in freezes.filter(maker_id=member_id) if only_own else freezes:
            _add_approval(hold, member_id)
        record(actor=actor, verb=Verb.MEMORY_UNFROZEN, object_type="memory", object_ids=[cube.id], version=cube.version)
        retention_request(actor)


def cube_refreeze(*, actor: Actor, cube_id: UUID, since: datetime) -> None:
    """Freeze a memory again, with the reason of the actor's own freeze that the actor ended after `since`.

    Raises NotFound; Forbidden; KeyUnavailable; Conflict if there is none. Writes: as `cube_freeze`.
    """
    member_id = _require_member(actor)
    with acting(actor):
        cube = cube_freezable(actor=actor, cube_id=cube_id)
        ended = HoldReleaseApproval.objects.filter(
            tenant_id=actor.tenant_id, member_id=member_id, created_at__gte=since
        )
        covering = HoldCube.objects.filter(tenant_id=actor.tenant_id, cube_id=cube.id)
        freezes = Hold.objects.filter(tenant_id=actor.tenant_id, kind=HoldKind.FREEZE, maker_id=member_id)
        freeze = freezes.filter(id__in=ended.values("hold"), pk__in=covering.values("hold")).order_by("-id").first()
        if freeze is None:
            raise Conflict("No freeze of this memory was ended by the action.")
        cube_freeze(actor=actor, cube_id=cube.id, reason=terms_open(freeze).reason)


def cube_freezable(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> Cube:
    """Return a memory that the actor may freeze, as it is shown in the response.

    Raises NotFound; Forbidden; VersionConflict.
    """
    with acting(actor):
        cube = locate(actor, cube_id)
        authorize(actor, Permission.MEMORY_FREEZE, cube_target(cube))
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))
        if expected_versions is not None:
            check_version(cube, expected_versions)
    return cube


def _own_freezes(actor: Actor, cube: Cube, member_id: UUID) -> QuerySet[Hold]:
    """Return the freezes that the actor may end. Raises Forbidden if all freezes are other members'."""
    freezes = select_freezes(cube.id)
    if sees_private(actor):
        return freezes
    own = freezes.filter(maker_id=member_id)
    if freezes.exists() and not own.exists():
        raise Forbidden(
            "A freeze is ended by its maker or by an admin.",
            permission=Permission.MEMORY_FREEZE,
            rule="own_freeze",
            object_type="memory",
            object_id=cube.id,
        )
    return own


def _add_approval(hold: Hold, member_id: UUID) -> None:
    """Add a member's approval; the database checks that the transaction acts for that member, once a transaction."""
    user_id = Member.objects.values_list("user_id", flat=True).get(id=member_id)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.user', %s, true)", [str(user_id)])
    HoldReleaseApproval(tenant_id=hold.tenant_id, hold=hold, member_id=member_id).save(force_insert=True)


def _draft_hold(actor: Actor, draft: HoldDraft, maker: UUID) -> tuple[Hold, CubeQuerySet]:
    """Return the unsaved hold, and the rows among which it covers the matching ones."""
    named = [name for name in ("memory_id", "filters", "subject") if getattr(draft, name) is not None]
    if len(named) != 1:
        raise Invalid(errors=[FieldError("body", "name one of memory_id, filters and subject")])
    hold = Hold(id=uuid7(), tenant_id=actor.tenant_id, maker_id=maker)
    rows = Cube.objects.filter(tenant_id=actor.tenant_id)
    if draft.memory_id is not None:
        hold.kind, rows = HoldKind.MEMORY, rows.filter(id=draft.memory_id)
        if not rows.exists():
            raise Invalid(errors=[FieldError("memory_id", "there is no such memory")])
    elif draft.subject is not None:
        hold.kind, hold.subject_id = HoldKind.SUBJECT, _subject_id(actor, draft.subject)
        rows = rows.filter(id__in=_select_cubes_about(hold.subject_id))
    else:
        hold.kind = HoldKind.QUERY
        _check_filters(actor, draft.filters or {})
    return hold, rows


def _check_filters(actor: Actor, filters: Mapping[str, Any]) -> None:
    filter_refuse_empty(filters)
    filter_read(token_maker(actor.tenant_id), filters)


def _subject_id(actor: Actor, reference: str) -> UUID:
    return subject_ensure(actor=actor, reference=reference, permission=Permission.HOLD_MANAGE).id


def _select_cubes_about(subject_id: UUID | None) -> QuerySet[CubeVersion, UUID]:
    """Return the cubes that have a version about the subject: such a version is sealed with the subject's key."""
    return CubeVersion.objects.filter(subject_id=subject_id).values_list("cube_id", flat=True)


def _refuse_single_member() -> None:
    if Member.objects.filter(removed_at=None).count() < 2:
        raise SecondMemberNeeded("This tenant has one member: add a second one first, then both approve.")


def _check_reason(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_REASON or "\x00" in text:
        raise Invalid(errors=[FieldError("reason", f"say why, in 1 to {LONGEST_REASON} characters")])
    return text


def _require_member(actor: Actor) -> UUID:
    """Return the id of the actor's member: only people create and release holds. Raises Forbidden."""
    if actor.member_id is None:
        raise Forbidden("Only a member can hold or release.", permission=Permission.HOLD_MANAGE, rule="member")
    return actor.member_id
