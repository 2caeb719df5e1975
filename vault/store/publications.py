"""Publications: one member offers a version, another member approves it if policies require that, others find it."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, QuerySet
from django.db.models.functions import Now

from governance.access.decisions.rules import ROLE_PERMISSIONS, Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NotFound
from governance.ids import uuid7
from governance.models import Member
from governance.outbox.services import emit
from governance.pages import Pages
from governance.policies.selectors import publish_approval
from governance.tenants.selectors import tenant_id_by_slug
from governance.vocabulary import Permission, PublishApproval, RoleName, Topic, Verb
from vault.models import Contract, Listing, PackVersion, Publication
from vault.store.listings import listing_write
from vault.store.lookup import pack_target, version_locate
from vault.store.own_texts import check_own_texts
from vault.store.rules import Terms, terms_json
from vault.store.services import version_mark
from vault.vocabulary import ContractState, PackState, PublicationState, Visibility

MOST_TENANTS = 50
ERASED = "Memories of this version were erased."
FREE = Terms()
OFFERABLE = frozenset({PackState.READY})
STOPPED = frozenset({PublicationState.HIDDEN, PublicationState.BANNED})


@dataclass(frozen=True)
class PublicationDraft:
    """A version to offer. tenants: ids, for the visibility TENANTS only."""

    version_id: UUID
    visibility: Visibility = Visibility.TENANT
    tenants: tuple[UUID, ...] = ()
    terms: Terms = FREE


def tenant_ids_of_slugs(slugs: tuple[str, ...]) -> tuple[UUID, ...]:
    """Return the ids of the tenants with these slugs. Raises Invalid, which names the unknown slugs."""
    found = {slug: tenant_id_by_slug(slug) for slug in slugs[:MOST_TENANTS]}
    unknown = [slug for slug in slugs if found.get(slug) is None]
    if unknown:
        raise Invalid(errors=[FieldError("tenants", f"no such organisation: {', '.join(unknown)}")])
    return tuple(tenant_id for tenant_id in found.values() if tenant_id is not None)


def publication_create(*, actor: Actor, draft: PublicationDraft) -> Publication:
    """Offer a version of a pack, in place of the version offered before.

    It waits for another member's approval if the tenant's sharing policies require one. Raises NotFound; Forbidden;
    Invalid; Conflict. Writes: Publication, Listing?, PackVersion?, AuditEntry.
    """
    with acting(actor):
        version = version_locate(actor, draft.version_id, lock=True)
        authorize(actor, Permission.STORE_MANAGE, pack_target(version.pack))
        if version.state not in OFFERABLE:
            raise Conflict(f"The version is {version.state}; only a ready one can be published.")
        _check_tenants(draft)
        check_own_texts(actor, version.pack, vars(draft.terms))
        rows = Publication.objects.select_for_update(of=("self",)).select_related("version")
        row = rows.filter(tenant_id=actor.tenant_id, pack=version.pack).first()
        if row is None:
            row = Publication(id=uuid7(), tenant_id=actor.tenant_id, pack=version.pack, state=PublicationState.WAITING)
        _check_newer(row, version)
        row.visibility, row.tenants = draft.visibility, list(draft.tenants)
        row.terms = terms_json(draft.terms)
        row.requested_by_id, row.waiting, row.reason = actor.member_id, version, ""
        if row.state == PublicationState.REJECTED:
            row.state = PublicationState.WAITING
        needs_another = _needs_approval(actor, draft.visibility)
        row.save()
        record(actor=actor, verb=Verb.PUBLICATION_CREATED, object_type="publication", object_ids=[row.id])
        if not needs_another:
            _publish_version(actor, row)
    return row


def publication_approve(*, actor: Actor, publication_id: UUID) -> Publication:
    """Approve the waiting version, so that others can find it.

    Raises NotFound; Forbidden; Conflict for the member who offered it. Writes: Publication, Listing, PackVersion,
    AuditEntry ….
    """
    with acting(actor):
        row = publication_locate(actor, publication_id, lock=True)
        authorize(actor, Permission.STORE_MANAGE, publication_target(row))
        if row.waiting is None:
            raise Conflict("Nothing waits for an approval.")
        if row.requested_by_id == actor.member_id:
            raise Conflict("Another member approves a publication.")
        record(actor=actor, verb=Verb.PUBLICATION_ACCEPTED, object_type="publication", object_ids=[row.id])
        _publish_version(actor, row)
    return row


def publication_reject(*, actor: Actor, publication_id: UUID, reason: str) -> Publication:
    """Reject the waiting version; the version published before stays. Raises NotFound; Forbidden; Conflict.

    Writes: Publication, AuditEntry.
    """
    with acting(actor):
        row = publication_locate(actor, publication_id, lock=True)
        authorize(actor, Permission.STORE_MANAGE, publication_target(row))
        if row.waiting is None:
            raise Conflict("Nothing waits for an approval.")
        row.waiting, row.reason = None, reason
        row.state = PublicationState.REJECTED if row.version_id is None else row.state
        row.save()
        record(actor=actor, verb=Verb.PUBLICATION_REJECTED, object_type="publication", object_ids=[row.id])
    return row


def version_yank(*, actor: Actor, version_id: UUID, reason: str) -> PackVersion:
    """Yank a version; the newest other published version replaces it, if there is one.

    Raises NotFound; Forbidden; Conflict. Writes: PackVersion, Publication?, Listing?, AuditEntry, OutboxEvent?.
    """
    with acting(actor):
        version = version_locate(actor, version_id, lock=True)
        authorize(actor, Permission.STORE_MANAGE, pack_target(version.pack))
        if version.state not in {PackState.READY, PackState.DEPRECATED}:
            raise Conflict(f"The version is {version.state}; only a ready one can be yanked.")
        version_mark(actor=actor, row=version, state=PackState.YANKED, reason=reason)
        rows = Publication.objects.select_for_update(of=("self",))
        row = rows.filter(tenant_id=actor.tenant_id, pack=version.pack).first()
        if row is not None:
            _replace_yanked_version(actor, row, version)
            _tell_subscribers(actor, row)
    return version


def version_remove(*, actor: Actor, version_id: UUID) -> None:
    """Delete a version and its file, if no organisation has it installed under a live contract. Its number becomes
    free.

    Raises NotFound; Forbidden; Conflict. Writes: Publication?, AuditEntry, OutboxEvent?; deletes PackVersion, Listing?.
    """
    with acting(actor):
        version = version_locate(actor, version_id, lock=True)
        authorize(actor, Permission.STORE_MANAGE, pack_target(version.pack))
        _check_removable(version)
        rows = Publication.objects.select_for_update(of=("self",))
        row = rows.filter(tenant_id=actor.tenant_id, pack=version.pack).first()
        if row is not None:
            _replace_yanked_version(actor, row, version)
            _tell_subscribers(actor, row)
        Listing.objects.filter(tenant_id=actor.tenant_id, version=version).delete()  # no other version is published
        version.delete()
        record(actor=actor, verb=Verb.PACK_VERSION_REMOVED, object_type="pack_version", object_ids=[version_id])


def versions_erase(*, actor: Actor, subject_id: UUID) -> int:
    """Yank and blank the versions with anonymised memories about a data subject; return their number.

    Raises Forbidden. Writes: PackVersion …, Publication …, Listing …, AuditEntry.
    """
    authorize(actor, Permission.SUBJECT_MANAGE, Target("subject", subject_id, actor.tenant_id))
    with acting(actor):
        rows = PackVersion.objects.filter(tenant_id=actor.tenant_id, subjects__contains=[subject_id])
        found = list(rows.select_for_update().order_by("id"))
        for version in found:
            version.state, version.reason = PackState.YANKED, ERASED
            version.sealed = version.wordings = version.preview = version.trial = b""
            version.subjects = [reference for reference in version.subjects if reference != subject_id]
            version.save()
            for row in Publication.objects.select_for_update().filter(pack_id=version.pack_id):
                _replace_yanked_version(actor, row, version)
                _tell_subscribers(actor, row)
        if found:
            ids = [version.id for version in found]
            record(actor=actor, verb=Verb.PACK_VERSION_YANKED, object_type="pack_version", object_ids=ids)
    return len(found)


def publications_list(*, actor: Actor, pages: Pages) -> list[Publication]:
    """Return the tenant's own publications, newest first. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.STORE_MANAGE)
    with acting(actor):
        rows = Publication.objects.filter(tenant_id=actor.tenant_id)
        found = list(pages.take(_select_with_pack(rows).order_by("-id")))
        ids = [publication.id for publication in found]
        record(actor=actor, verb=Verb.PUBLICATION_LISTED, object_type="publication", object_ids=ids)
        return found


def publications_waiting(*, actor: Actor, pages: Pages) -> list[Publication]:
    """Return the tenant's publications that wait for an approval, newest first. Raises Forbidden. Writes:
    AuditEntry."""
    authorize(actor, Permission.STORE_MANAGE)
    with acting(actor):
        rows = Publication.objects.filter(tenant_id=actor.tenant_id, waiting__isnull=False)
        found = list(pages.take(_select_with_pack(rows).order_by("-id")))
        ids = [publication.id for publication in found]
        record(actor=actor, verb=Verb.PUBLICATION_LISTED, object_type="publication", object_ids=ids)
        return found


def publication_find(*, actor: Actor, pack_id: UUID) -> Publication | None:
    """Return the publication of one of the tenant's own packs, or None. Raises Forbidden."""
    authorize(actor, Permission.STORE_MANAGE, Target("pack", pack_id, actor.tenant_id))
    with acting(actor):
        return _select_with_pack(Publication.objects.filter(tenant_id=actor.tenant_id, pack_id=pack_id)).first()


def publication_get(*, actor: Actor, publication_id: UUID) -> Publication:
    """Return one of the tenant's own publications. Raises NotFound; Forbidden."""
    with acting(actor):
        row = publication_locate(actor, publication_id)
        authorize(actor, Permission.STORE_MANAGE, publication_target(row))
    return row


def publication_locate(actor: Actor, publication_id: UUID, *, lock: bool = False) -> Publication:
    """Return the row of one publication. Raises NotFound. The caller asks `authorize` next. Use inside `acting`."""
    rows = _select_with_pack(Publication.objects.filter(tenant_id=actor.tenant_id, id=publication_id))
    row = (rows.select_for_update(of=("self",)) if lock else rows).first()
    if row is None:
        raise NotFound
    return row


def publication_target(row: Publication) -> Target:
    return Target("publication", row.id, row.tenant_id)


def _select_with_pack(rows: QuerySet[Publication]) -> QuerySet[Publication]:
    unread = [f"{of}__{column}" for of in ("version", "waiting") for column in ("sealed", "preview", "trial")]
    return rows.select_related("pack", "version", "waiting", "requested_by", "approved_by").defer(*unread)


def _check_tenants(draft: PublicationDraft) -> None:
    if (draft.visibility is Visibility.TENANTS) != bool(draft.tenants):
        raise Invalid(errors=[FieldError("tenants", "name organisations with the visibility tenants, and only then")])


def _check_removable(version: PackVersion) -> None:
    """Check that the version can be deleted. Raises Conflict."""
    if version.state == PackState.SCANNING:
        raise Conflict("The version is being scanned: cancel its job, or wait.")
    contracts = Contract.objects.filter(tenant_id=version.tenant_id, publication__pack_id=version.pack_id)
    live = contracts.filter(state=ContractState.ACTIVE, number=version.number).exclude(valid_to__lte=Now())
    count = live.count()
    if count:
        raise Conflict(f"Live subscribers have this version: {count}. Yank it, or wait until they have another one.")


def _check_newer(row: Publication, version: PackVersion) -> None:
    """Check that the version is newer than the published one. Raises Conflict."""
    if row.state in STOPPED:
        raise Conflict(f"The operator has made this publication {row.state}.")
    if row.version is not None and row.version_id != version.id and version.parts <= row.version.parts:
        raise Conflict(f"Version {row.version.number} is published already; publish a newer one.")


def _needs_approval(actor: Actor, visibility: Visibility) -> bool:
    approval = publish_approval(actor=actor)
    if approval is PublishApproval.OUTSIDE:
        return visibility is not Visibility.TENANT and _other_approver(actor)
    return approval is PublishApproval.ALWAYS


def _other_approver(actor: Actor) -> bool:
    roles = [role for role in RoleName if Permission.STORE_MANAGE in ROLE_PERMISSIONS[role]]
    others = Member.objects.filter(tenant_id=actor.tenant_id, removed_at=None, role__name__in=roles)
    return any(member_id != actor.member_id for member_id in others.values_list("id", flat=True))


def _publish_version(actor: Actor, row: Publication) -> None:
    version, row.waiting = row.waiting, None
    row.version = version
    row.approved_by_id, row.state = actor.member_id, PublicationState.PUBLISHED
    row.published_at = Now()
    row.save()
    row.refresh_from_db(fields=["published_at"])
    listing_write(actor=actor, publication=row, is_approved=True)
    if version is not None:
        PackVersion.objects.filter(id=version.id, published_at=None).update(published_at=Now())
    _tell_subscribers(actor, row)


def _tell_subscribers(actor: Actor, row: Publication) -> None:
    emit(actor=actor, topic=Topic.STORE_CHANGED, payload={"publication": str(row.id)})


def _replace_yanked_version(actor: Actor, row: Publication, version: PackVersion) -> None:
    others = PackVersion.objects.filter(pack_id=row.pack_id, published_at__isnull=False).exclude(id=version.id)
    if row.waiting_id == version.id:
        row.waiting = None
    if row.version_id == version.id:
        row.version = others.exclude(state=PackState.YANKED).order_by(F("parts").desc()).first()
    row.save()
    listing_write(actor=actor, publication=row)
