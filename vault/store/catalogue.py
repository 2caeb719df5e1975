"""The catalogue of the MemStore, for one tenant. Listing rows are the only rows of other tenants that a tenant reads.

Texts and samples of a publication are read in a transaction of its publisher, after its row was found.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db.models import Case, Count, F, FloatField, Func, IntegerField, Q, QuerySet, UUIDField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest
from pgvector import HalfVector
from pgvector.django import CosineDistance

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, tenant_transaction
from governance.errors import NotFound
from governance.pages import Pages
from governance.vocabulary import Permission, Verb
from vault.embeddings.calibration import to_cosine
from vault.lexicon.segments import pieces
from vault.lexicon.tokens import content_terms, language_of
from vault.models import Listing, Pack, PackVersion
from vault.providers.ports import ProviderUnavailable
from vault.providers.registry import embedder
from vault.store.excerpts import preview_open, preview_store
from vault.store.files import Item
from vault.vocabulary import PackTopic

logger = logging.getLogger(__name__)

MOST_WORDS = 8
NEAREST = 50  # publications that a search by meaning finds
COMPARED = 200  # those with the nearest signatures, whose vectors are compared
LEAST_SIMILAR = 0.15  # mean of two calibrated cosines with a text: of a pack's own texts, and of its nearest memories


class CatalogueOrder(StrEnum):
    """The order of the catalogue. BEST: packs with all words of the text first, then packs with a similar meaning."""

    BEST = "best"
    USED = "used"
    RATED = "rated"
    NEWEST = "newest"


ORDERS = {
    CatalogueOrder.BEST: "-fit",
    CatalogueOrder.USED: "-subscribers",
    CatalogueOrder.RATED: "-rating",
    CatalogueOrder.NEWEST: "-published_at",
}


class NearestSignatureDistance(Func):
    """The smallest number of different bits between the signatures of a row and that of a vector; of a row without
    signatures, that of its own vector."""

    output_field = FloatField()
    template = (
        "(SELECT min(part <~> binary_quantize(%(expressions)s::halfvec)) "
        "FROM unnest(coalesce(signatures, ARRAY[binary_quantize(vector)]::varbit[])) AS part)"
    )


class NearestPartDistance(Func):
    """The smallest cosine distance of a vector from those of an array; null for an empty array."""

    output_field = FloatField()
    template = "(SELECT min(distance) FROM (SELECT unnest(%(expressions)s AS distance) AS distances)"
    arg_joiner = ") <=> "


@dataclass(frozen=True)
class CatalogueQuery:
    """A query of the catalogue. topics, languages: any of these; chosen: the requested order.

    text: matches packs with every content word in title, description, name, publisher or keywords, and the NEAREST by
    meaning of these texts and of their memories.
    """

    text: str = ""
    topics: tuple[PackTopic, ...] = ()
    languages: tuple[str, ...] = ()
    chosen: CatalogueOrder = CatalogueOrder.BEST

    @property
    def order(self) -> CatalogueOrder:
        """The order that applies: the chosen one, but without a text BEST becomes USED."""
        is_fit = self.chosen is CatalogueOrder.BEST
        return CatalogueOrder.USED if is_fit and not self.text.strip() else self.chosen


@dataclass(frozen=True)
class Wanted:
    """A query of the catalogue. near: ids of the publications whose meaning is nearest to its text, nearest first."""

    query: CatalogueQuery
    near: tuple[UUID, ...] = ()


@dataclass(frozen=True)
class Offer:
    """A publication with its texts. versions: the published ones, newest first; samples: memories of the newest
    version."""

    listing: Listing
    readme: str
    authors: tuple[str, ...]
    versions: Sequence[PackVersion]
    samples: Sequence[Item] = field(repr=False)


def catalogue_search(*, actor: Actor, query: CatalogueQuery) -> Wanted:
    """Find the publications whose meaning is near to the text of a query. Raises Forbidden.

    If the embedding model does not answer, the catalogue is searched by words only.
    """
    authorize(actor, Permission.MEMORY_READ)
    if not query.text.strip():
        return Wanted(query)
    try:
        model = embedder()
        vector = HalfVector(model.embed([query.text])[0])
    except ProviderUnavailable as failure:
        logger.warning("catalogue searched by words alone: %s", failure.code)
        return Wanted(query)
    scale = (model.name, language_of(query.text))
    similarity = _similarity_expression(vector, to_cosine(0.0, *scale))
    with acting(actor):
        rows = Listing.objects.filter(is_offered=True, model=model.name)
        bits = rows.annotate(bits=NearestSignatureDistance(Value(vector.to_text()))).order_by("bits", "id")
        compared = Listing.objects.filter(id__in=bits.values("id")[:COMPARED])
        nearest = compared.annotate(similarity=similarity).order_by("-similarity", "id")
        found = nearest.values_list("id", "similarity")[:NEAREST]
        least = to_cosine(LEAST_SIMILAR, *scale)
        return Wanted(query, tuple(listing_id for listing_id, cosine in found if cosine >= least))


def catalogue_list(*, actor: Actor, wanted: Wanted, pages: Pages) -> list[Listing]:
    """Return a page of the publications that the actor's tenant may find. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        found: list[Listing] = list(
            pages.take(_filter_and_rank_listings(wanted).order_by(ORDERS[wanted.query.order], "-id"))
        )
        ids = [listing.id for listing in found]
        record(actor=actor, verb=Verb.PUBLICATION_LISTED, object_type="publication", object_ids=ids)
        return found


def catalogue_facets(*, actor: Actor, wanted: Wanted) -> dict[str, dict[str, int]]:
    """Count the matching publications of each topic and language. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    query = wanted.query
    with acting(actor):
        rows = _filter_listings(wanted).order_by().values_list("topic", "languages").annotate(total=Count("id"))
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
    """Return one listing. Raises NotFound; Forbidden."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ, Target("publication", publication_id, actor.tenant_id))
        found = Listing.objects.filter(id=publication_id, is_offered=True).first()
    if found is None:
        raise NotFound
    return found


def listing_get_by_name(*, actor: Actor, publisher: str, name: str) -> Listing:
    """Return the listing of `publisher/name`. Raises NotFound; Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        found = Listing.objects.filter(publisher_slug=publisher, name=name, is_offered=True).first()
    if found is None:
        raise NotFound
    return found


def offer_get(*, actor: Actor, publication_id: UUID) -> Offer:
    """Return a publication with its texts, versions and samples. Runs outside any transaction.

    The file of the version is not opened: it was verified when it was built.
    Raises NotFound; Forbidden; KeyUnavailable, also for a changed preview. Writes: AuditEntry.
    """
    with acting(actor):
        listing = listing_get(actor=actor, publication_id=publication_id)
        record(actor=actor, verb=Verb.PUBLICATION_READ, object_type="publication", object_ids=[listing.id])
    with tenant_transaction(listing.publisher_id):
        pack = Pack.objects.get(id=listing.pack_id)
        rows = PackVersion.objects.filter(pack=pack, published_at__isnull=False).defer("sealed").order_by("-parts")
        version = PackVersion.objects.defer(None).defer("sealed", "wordings", "trial").get(id=listing.version_id)
        samples = preview_open(version, actor.tenant_id)
        if samples is None:  # built by an earlier release
            preview_store(version)
            samples = preview_open(version, actor.tenant_id) or []
        return Offer(listing, pack.readme, tuple(pack.authors), list(rows), samples)


def _similarity_expression(vector: HalfVector, least: float) -> Combinable:
    """Return the SQL mean of a vector's cosines with the texts of a row and with the nearest group of its memories.

    A cosine below `least` counts as that, so that a bad match of one does not undo a good match of the other.
    """
    of_texts = CosineDistance("vector", vector)
    of_memories = Coalesce(
        NearestPartDistance("contents", Value(vector.to_text())), of_texts, output_field=FloatField()
    )
    return (Greatest(1.0 - of_texts, least) + Greatest(1.0 - of_memories, least)) / 2.0


def _filter_listings(wanted: Wanted) -> QuerySet[Listing]:
    words = _word_condition(wanted)
    condition = words | Q(id__in=wanted.near) if wanted.near else words
    return Listing.objects.filter(condition, is_offered=True)


def _word_condition(wanted: Wanted) -> Q:
    """Return the condition that a row's texts contain every content word of the query as a substring.

    If no row is near in meaning, one of the words of a Chinese text is enough.
    """
    words, unspaced = list[str](), list[str]()
    for token in wanted.query.text.lower().split()[:MOST_WORDS]:
        for piece in [token] if token.isascii() else pieces(token):
            if piece.isalnum() or token.isascii():
                (words if piece.isascii() else unspaced).append(piece)
    unspaced = unspaced[:MOST_WORDS]
    connector = Q.AND if wanted.near else Q.OR
    condition = Q(*(Q(texts__contains=word) for word in _select_content_words(unspaced)), _connector=connector)
    return condition & Q(*(Q(texts__contains=word) for word in _select_content_words(words)))


def _select_content_words(words: list[str]) -> list[str]:
    """Return the words that are no question words, or all if there are only such."""
    return [word for word in words if content_terms(word)] or words


def _filter_and_rank_listings(wanted: Wanted) -> QuerySet[Listing]:
    query = wanted.query
    rows = _filter_listings(wanted)
    if query.topics:
        rows = rows.filter(topic__in=query.topics)
    if query.languages:
        rows = rows.filter(languages__overlap=list(query.languages))
    return rows.annotate(fit=_rank_expression(wanted)) if query.order is CatalogueOrder.BEST else rows


def _rank_expression(wanted: Wanted) -> Combinable:
    """Return the SQL score: NEAREST + 1 for a row with all words of the text, plus up to NEAREST for nearness in
    meaning."""
    ranks = Func(Value(list(wanted.near), ArrayField(UUIDField())), F("id"), function="array_position")
    by_meaning = NEAREST + 1 - Coalesce(ranks, NEAREST + 1, output_field=IntegerField())
    by_words = Case(When(_word_condition(wanted), then=NEAREST + 1), default=0, output_field=IntegerField())
    return by_words + by_meaning
