"""The catalogue row of a publication, which its publisher writes and other tenants read."""

from collections.abc import Sequence
from uuid import UUID

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.models import Tenant
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic
from vault.models import Listing, Pack, PackVersion, Publication
from vault.packs.excerpts import trial_seal
from vault.packs.files import file_read
from vault.packs.selectors import file_open
from vault.packs.wordings import wordings_open
from vault.providers.registry import embedder
from vault.vocabulary import PublicationState

OF_PACK = ("name", "title", "description", "licence", "topic", "keywords")
OF_VERSION = ("number", "count", "digest", "key_id", "languages")
APPROVED = ("visibility", "tenants", "terms", "published_at")
LONGEST_README = 2_000  # characters of it that a search by meaning looks at


def listing_write(*, actor: Actor, publication: Publication, is_approved: bool = False) -> None:
    """Update the catalogue row of a publication. is_approved: its visibility and terms are approved too.

    A publication without an approval has no row. Without a version, hidden or banned, it keeps its row, but nobody
    finds it.
    Raises Forbidden. Writes: Listing, OutboxEvent?.
    """
    authorize(actor, Permission.STORE_MANAGE, Target("publication", publication.id, publication.tenant_id))
    with acting(actor):
        row = Listing.objects.select_for_update().filter(tenant_id=actor.tenant_id, id=publication.id).first()
        if row is None and not is_approved:
            return
        row = row or Listing(id=publication.id, tenant_id=actor.tenant_id, pack_id=publication.pack_id)
        before = row.texts
        _copy_texts(row, publication)
        if is_approved:
            for name in APPROVED:
                setattr(row, name, getattr(publication, name))
        row.save()
        if row.texts != before or not row.model:
            emit(actor=actor, topic=Topic.LISTINGS_WRITTEN, payload={"listing": str(row.id)})


def listings_embed(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Embed the texts of catalogue rows. Raises ProviderUnavailable. Writes: Listing …."""
    authorize(actor, Permission.STORE_MANAGE)
    ids = sorted({UUID(str(payload["listing"])) for payload in payloads})
    with acting(actor):
        rows = list(Listing.objects.filter(tenant_id=actor.tenant_id, id__in=ids))
        packs = Pack.objects.filter(id__in=[row.pack_id for row in rows])
        readmes = dict(packs.values_list("id", "readme"))
    model = embedder()
    texts = ["\n".join((_compose_text(row), readmes.get(row.pack_id, "")[:LONGEST_README])) for row in rows]
    if not texts:
        return lambda: None
    vectors = model.embed(texts)

    def write() -> None:
        for row, vector in zip(rows, vectors, strict=True):
            same = Listing.objects.filter(tenant_id=actor.tenant_id, id=row.id, texts=row.texts)
            same.update(vector=vector, model=model.name)

    return write


def trials_index(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Make the index of trials of published versions that have none by the present model.

    Raises ProviderUnavailable; KeyUnavailable. Writes: PackVersion ….
    """
    authorize(actor, Permission.STORE_MANAGE)
    ids = sorted({UUID(str(payload["listing"])) for payload in payloads})
    with acting(actor):
        published = Listing.objects.filter(tenant_id=actor.tenant_id, id__in=ids, is_offered=True).values("version_id")
        rows = list(PackVersion.objects.filter(id__in=published).exclude(trial_model=embedder().name))
        files = [(row, file_open(row), wordings_open(row)) for row in rows if row.sealed]
    made = [(row, trial_seal(row, file_read(content).items, wordings)) for row, content, wordings in files]

    def write() -> None:
        for row, (trial, model) in made:
            PackVersion.objects.filter(id=row.id).exclude(sealed=b"").update(trial=trial, trial_model=model)

    return write


def _compose_text(row: Listing) -> str:
    return "\n".join((row.title, row.description, row.topic, ", ".join(row.keywords)))


def _copy_texts(row: Listing, publication: Publication) -> None:
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
