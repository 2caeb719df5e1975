"""Catalogue rows without vectors of the configured model."""

from django.db.models import Q, QuerySet

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic
from vault.models import Listing
from vault.providers.registry import embedder


def listings_stale(*, actor: Actor) -> int:
    """Return the number of the tenant's catalogue rows without a vector of the configured model. Raises Forbidden."""
    authorize(actor, Permission.STORE_MANAGE)
    with acting(actor):
        return _select_stale(actor).count()


def listings_refresh(*, actor: Actor) -> int:
    """Request vectors for these rows, and return their number. Raises Forbidden. Writes: OutboxEvent …."""
    authorize(actor, Permission.STORE_MANAGE)
    with acting(actor):
        ids = list(_select_stale(actor).values_list("id", flat=True))
        for listing_id in ids:
            emit(actor=actor, topic=Topic.LISTINGS_WRITTEN, payload={"listing": str(listing_id)})
        return len(ids)


def _select_stale(actor: Actor) -> QuerySet[Listing]:
    rows = Listing.objects.filter(tenant_id=actor.tenant_id)
    return rows.filter(~Q(model=embedder().name) | Q(contents=None))
