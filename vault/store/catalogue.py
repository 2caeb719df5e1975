"""The catalogue of the MemStore, for one tenant. The view Listing reads across tenants, and nothing else does.

Texts and samples of one publication are read in a transaction of its publisher, once the view has shown it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from django.db.models import Count, F, Func, Q, QuerySet

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, tenant_transaction
from governance.errors import NotFound
from governance.pages import Pages
from governance.vocabulary import Permission, Verb
from vault.models import Listing, Pack, PackVersion
from vault.packs.files import Item, file_read
from vault.packs.selectors import file_open
from vault.vocabulary import PackTopic

SAMPLES = 6
MOST_WORDS = 8


class CatalogueOrder(StrEnum):
    USED = "used"
    RATED = "rated"
    NEWEST = "newest"


ORDERS = {
    CatalogueOrder.USED: "-subscribers",
    CatalogueOrder.RATED: "-stars",
    CatalogueOrder.NEWEST: "-published_at",
}


@dataclass(frozen=True)
class CatalogueQuery:
    """text: every word of it stands in title, description, name, publisher or keywords. topics, languages: any of."""

    text: str = ""
    topics: tuple[PackTopic, ...] = ()
    languages: tuple[str, ...] = ()
    order: CatalogueOrder = CatalogueOrder.USED


@dataclass(frozen=True)
class Offer:
    """A publication with its texts. versions: those that are published, newest first. samples: of the newest one."""

    listing: Listing
    readme: str
    authors: tuple[str, ...]
    versions: Sequence[PackVersion]
    samples: Sequence[Item] = field(repr=False)


def catalogue_list(*, actor: Actor, query: CatalogueQuery, pages: Pages) -> list[Listing]:
    """A page of the publications that the actor's tenant may find. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        found: list[Listing] = list(pages.take(_matching(query).order_by(ORDERS[query.order], "-id")))
        ids = [one.id for one in found]
        record(actor=actor, verb=Verb.PUBLICATION_LISTED, object_type="publication", object_ids=ids)
        return found


def catalogue_facets(*, actor: Actor, query: CatalogueQuery) -> dict[str, dict[str, int]]:
    """Count the publications of each topic and language, among those that match otherwise. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        topics = _matching(query, without="topics").order_by().values_list("topic").annotate(total=Count("id"))
        one_each = _matching(query, without="languages").annotate(one=Func(F("languages"), function="unnest"))
        languages = one_each.order_by().values_list("one").annotate(total=Count("id"))
        return {"topics": dict(topics), "languages": dict(languages)}


def listing_get(*, actor: Actor, publication_id: UUID) -> Listing:
    """Raises NotFound; Forbidden."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ, Target("publication", publication_id, actor.tenant_id))
        found = Listing.objects.filter(id=publication_id).first()
    if found is None:
        raise NotFound
    return found


def listing_named(*, actor: Actor, publisher: str, name: str) -> Listing:
    """The publication `publisher/name`. Raises NotFound; Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        found = Listing.objects.filter(publisher_slug=publisher, name=name).first()
    if found is None:
        raise NotFound
    return found


def offer_get(*, actor: Actor, publication_id: UUID) -> Offer:
    """A publication with its texts, versions and samples, outside any transaction. Raises NotFound; Forbidden.

    Writes: AuditEntry.
    """
    with acting(actor):
        listing = listing_get(actor=actor, publication_id=publication_id)
        record(actor=actor, verb=Verb.PUBLICATION_READ, object_type="publication", object_ids=[listing.id])
    with tenant_transaction(listing.publisher_id):
        pack = Pack.objects.get(id=listing.pack_id)
        rows = PackVersion.objects.filter(pack=pack, published_at__isnull=False).defer("sealed").order_by("-parts")
        items = file_read(file_open(PackVersion.objects.get(id=listing.version_id))).items
        return Offer(listing, pack.readme, tuple(pack.authors), list(rows), items[:SAMPLES])


def _matching(query: CatalogueQuery, *, without: str = "") -> QuerySet[Listing]:
    condition = Q()
    for word in query.text.split()[:MOST_WORDS]:
        texts = [Q(**{f"{name}__icontains": word}) for name in ("title", "description", "name", "publisher")]
        anywhere = Q(keywords__contains=[word.casefold()])
        for one in texts:
            anywhere |= one
        condition &= anywhere
    if query.topics and without != "topics":
        condition &= Q(topic__in=query.topics)
    if query.languages and without != "languages":
        condition &= Q(languages__overlap=list(query.languages))
    return Listing.objects.filter(condition)
