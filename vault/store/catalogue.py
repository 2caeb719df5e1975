"""The catalogue of the MemStore, for one tenant. Rows of Listing are the only ones that one tenant reads of another.

Texts and samples of one publication are read in a transaction of its publisher, once its row was found.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from django.db.models import Count, Q, QuerySet

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
    CatalogueOrder.RATED: "-rating",
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
        found: list[Listing] = list(pages.take(_filtered(query).order_by(ORDERS[query.order], "-id")))
        ids = [one.id for one in found]
        record(actor=actor, verb=Verb.PUBLICATION_LISTED, object_type="publication", object_ids=ids)
        return found


def catalogue_facets(*, actor: Actor, query: CatalogueQuery) -> dict[str, dict[str, int]]:
    """Count the publications of each topic and language, among those that match otherwise. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = _matching(query.text).order_by().values_list("topic", "languages").annotate(total=Count("id"))
        groups = list(rows)  # each publication is in one group: one pass counts both
    topics: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    for topic, spoken, total in groups:
        if not query.languages or set(query.languages).intersection(spoken):
            topics[topic] += total
        if not query.topics or topic in query.topics:
            languages.update(dict.fromkeys(spoken, total))
    return {"topics": dict(topics), "languages": dict(languages)}


def listing_get(*, actor: Actor, publication_id: UUID) -> Listing:
    """Raises NotFound; Forbidden."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ, Target("publication", publication_id, actor.tenant_id))
        found = Listing.objects.filter(id=publication_id, is_offered=True).first()
    if found is None:
        raise NotFound
    return found


def listing_named(*, actor: Actor, publisher: str, name: str) -> Listing:
    """The publication `publisher/name`. Raises NotFound; Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        found = Listing.objects.filter(publisher_slug=publisher, name=name, is_offered=True).first()
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


def _matching(text: str) -> QuerySet[Listing]:
    condition = Q(is_offered=True)
    for word in text.lower().split()[:MOST_WORDS]:
        condition &= Q(texts__contains=word)
    return Listing.objects.filter(condition)


def _filtered(query: CatalogueQuery) -> QuerySet[Listing]:
    rows = _matching(query.text)
    if query.topics:
        rows = rows.filter(topic__in=query.topics)
    return rows.filter(languages__overlap=list(query.languages)) if query.languages else rows
