"""The row of the catalogue that other tenants read of a publication, written by its publisher."""

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.models import Tenant
from governance.vocabulary import Permission
from vault.models import Listing, Publication
from vault.vocabulary import PublicationState

OF_PACK = ("name", "title", "description", "licence", "topic", "keywords")
OF_VERSION = ("number", "count", "digest", "key_id", "languages")
APPROVED = ("visibility", "tenants", "terms", "published_at")


def listing_write(*, actor: Actor, publication: Publication, is_approved: bool = False) -> None:
    """Bring the row of a publication up to date. is_approved: to whom and on which terms is approved as well.

    A publication without an approval has no row; one without a version, hidden or banned keeps its row, which nobody
    finds. Raises Forbidden. Writes: Listing.
    """
    authorize(actor, Permission.STORE_MANAGE, Target("publication", publication.id, publication.tenant_id))
    with acting(actor):
        row = Listing.objects.select_for_update().filter(tenant_id=actor.tenant_id, id=publication.id).first()
        if row is None and not is_approved:
            return
        row = row or Listing(id=publication.id, tenant_id=actor.tenant_id, pack_id=publication.pack_id)
        _copy(row, publication)
        if is_approved:
            for name in APPROVED:
                setattr(row, name, getattr(publication, name))
        row.save()


def _copy(row: Listing, publication: Publication) -> None:
    owner, pack, version = Tenant.objects.get(id=row.tenant_id), publication.pack, publication.version
    row.publisher, row.publisher_slug = owner.name, owner.slug
    for name in OF_PACK:
        setattr(row, name, getattr(pack, name))
    row.texts = "\n".join((pack.title, pack.description, pack.name, owner.name, *pack.keywords)).lower()
    row.is_offered = version is not None and publication.state == PublicationState.PUBLISHED
    if version is not None:
        row.version = version
        for name in OF_VERSION:
            setattr(row, name, getattr(version, name))
    row.ratings, row.subscribers = publication.ratings, publication.subscribers
    row.rating = publication.stars / publication.ratings if publication.ratings else 0.0
