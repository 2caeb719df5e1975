"""Ratings of packs: subscribers write them, the outbox reports them to publishers, everyone who finds the pack reads
them."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Count, Sum
from django.db.models.functions import Now

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting, tenant_transaction
from governance.errors import Conflict, FieldError, Invalid, NotFound
from governance.ids import uuid7
from governance.models import Tenant
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit
from governance.pages import Pages
from governance.vocabulary import Permission, Topic, Verb
from vault.models import Listing, PackRating, Publication, Subscription
from vault.store.catalogue import listing_get
from vault.store.listings import listing_write
from vault.vocabulary import ContractState

MOST_STARS = 5
LONGEST_RATING = 500


def rating_write(*, actor: Actor, publication_id: UUID, stars: int, text: str = "") -> PackRating:
    """Rate a pack to which the organisation is or was subscribed, or change the actor's own rating.

    Raises NotFound; Forbidden; Invalid; Conflict without a subscription. Writes: PackRating, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.STORE_MANAGE, Target("publication", publication_id, actor.tenant_id))
    _check_rating(stars, text)
    with acting(actor):
        subscription = _find_subscription(actor, publication_id)
        row = _find_own_rating(actor, publication_id) or PackRating(
            id=uuid7(), tenant_id=actor.tenant_id, publication_id=publication_id, member_id=actor.member_id
        )
        row.organisation = Tenant.objects.get(id=actor.tenant_id).name
        row.stars, row.text, row.number, row.rated_at = stars, text, subscription.number, Now()
        row.save()
        row.refresh_from_db(fields=["rated_at"])
        _report_rating(actor, row, subscription.publisher_id)
    return row


def rating_remove(*, actor: Actor, publication_id: UUID) -> None:
    """Remove the actor's own rating. Raises NotFound; Forbidden; Conflict.

    Writes: AuditEntry, OutboxEvent; deletes PackRating.
    """
    authorize(actor, Permission.STORE_MANAGE, Target("publication", publication_id, actor.tenant_id))
    with acting(actor):
        subscription = _find_subscription(actor, publication_id)
        row = _find_own_rating(actor, publication_id)
        if row is None:
            raise NotFound
        _report_rating(actor, row, subscription.publisher_id)
        row.delete()


def ratings_list(*, actor: Actor, publication_id: UUID, pages: Pages) -> list[PackRating]:
    """Return the ratings of a publication that the tenant can find, newest first. Raises NotFound; Forbidden.

    Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ, Target("publication", publication_id, actor.tenant_id))
    with acting(actor):
        listing = listing_get(actor=actor, publication_id=publication_id)
        record(actor=actor, verb=Verb.PUBLICATION_READ, object_type="publication", object_ids=[listing.id])
    with tenant_transaction(listing.publisher_id):
        rows = PackRating.objects.filter(tenant_id=listing.publisher_id, publication_id=listing.id)
        return list(pages.take(rows.filter(source_id__isnull=False).order_by("-id")))


def rating_own(*, actor: Actor, publication_id: UUID) -> PackRating | None:
    """Return the actor's own rating, or None. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ, Target("publication", publication_id, actor.tenant_id))
    with acting(actor):
        return _find_own_rating(actor, publication_id)


def may_rate(*, actor: Actor, publication_id: UUID) -> bool:
    """Return whether `rating_write` would accept a rating. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ, Target("publication", publication_id, actor.tenant_id))
    if not is_allowed(actor, Permission.STORE_MANAGE):
        return False
    with acting(actor):
        try:
            _find_subscription(actor, publication_id)
        except (Conflict, NotFound):
            return False
    return True


def ratings_report(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Copy the present ratings to the publishers' tenants, and count them there.

    Writes, in each publisher's tenant: PackRating, Publication, Listing, AuditEntry.
    """
    authorize(actor, Permission.STORE_MANAGE)
    named = {tuple(str(payload[name]) for name in ("rating", "publication", "publisher")) for payload in payloads}
    for rating, publication, publisher in sorted(named):
        with acting(actor):
            row = PackRating.objects.filter(tenant_id=actor.tenant_id, id=UUID(rating), source_id=None).first()
        there = system_actor(tenant_id=UUID(publisher), request_id=actor.request_id)
        with acting(there):
            _store_received_rating(there, UUID(publication), UUID(rating), row)
    return lambda: None


def _check_rating(stars: int, text: str) -> None:
    """Check the rating. Raises Invalid."""
    if not 1 <= stars <= MOST_STARS:
        raise Invalid(errors=[FieldError("stars", f"1 to {MOST_STARS}")])
    if len(text) > LONGEST_RATING or "\x00" in text:
        raise Invalid(errors=[FieldError("text", f"at most {LONGEST_RATING} characters, and no NUL")])


def _find_subscription(actor: Actor, publication_id: UUID) -> Subscription:
    """Return the latest installed subscription. Raises NotFound; Conflict without one, or for the tenant's own pack."""
    if actor.member_id is None:
        raise Conflict("A member rates a pack.")
    rows = Subscription.objects.filter(tenant_id=actor.tenant_id, publication_id=publication_id)
    row = rows.exclude(state=ContractState.REQUESTED).order_by("-id").first()
    if row is None and not Listing.objects.filter(id=publication_id, is_offered=True).exists():
        raise NotFound
    if row is None:
        raise Conflict("Only subscribers rate a pack.")
    if row.publisher_id == actor.tenant_id:
        raise Conflict("An organisation does not rate its own packs.")
    return row


def _find_own_rating(actor: Actor, publication_id: UUID) -> PackRating | None:
    if actor.member_id is None:
        return None
    rows = PackRating.objects.filter(tenant_id=actor.tenant_id, publication_id=publication_id, source_id=None)
    return rows.filter(member_id=actor.member_id).first()


def _report_rating(actor: Actor, row: PackRating, publisher_id: UUID) -> None:
    ids = {"rating": row.id, "publication": row.publication_id, "publisher": publisher_id}
    record(actor=actor, verb=Verb.PUBLICATION_RATED, object_type="publication", object_ids=[row.publication_id])
    emit(actor=actor, topic=Topic.STORE_RATED, payload={name: str(row_id) for name, row_id in ids.items()})


def _store_received_rating(publisher: Actor, publication_id: UUID, rating_id: UUID, row: PackRating | None) -> None:
    found = Publication.objects.select_for_update(of=("self",)).select_related("pack", "version")
    publication = found.defer("version__sealed").filter(tenant_id=publisher.tenant_id, id=publication_id).first()
    if publication is None:
        return
    reported = PackRating.objects.filter(tenant_id=publisher.tenant_id, publication_id=publication_id)
    if row is None:
        reported.filter(source_id=rating_id).delete()
    else:
        values = {name: getattr(row, name) for name in ("organisation", "stars", "text", "number", "rated_at")}
        new = {**values, "id": uuid7(), "publication_id": publication_id}
        PackRating.objects.update_or_create(
            tenant_id=publisher.tenant_id, source_id=rating_id, defaults=values, create_defaults=new
        )
    counted = reported.filter(source_id__isnull=False).aggregate(stars=Sum("stars", default=0), ratings=Count("id"))
    publication.stars, publication.ratings = counted["stars"], counted["ratings"]
    publication.save(update_fields=["stars", "ratings"])
    listing_write(actor=publisher, publication=publication)
    record(actor=publisher, verb=Verb.PUBLICATION_RATED, object_type="publication", object_ids=[publication_id])
