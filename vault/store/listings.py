"""The catalogue row of a publication, which its publisher writes and other tenants read."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models.expressions import RawSQL
from pgvector import HalfVector

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.models import Tenant
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic
from vault.embeddings.groups import group_vectors
from vault.models import Listing, Pack, PackVersion, Publication
from vault.providers.registry import embedder
from vault.store.excerpts import trial_open, trial_seal
from vault.store.files import file_read
from vault.store.selectors import file_open
from vault.store.wordings import wordings_open
from vault.vocabulary import PublicationState

OF_PACK = ("name", "title", "description", "licence", "topic", "keywords")
OF_VERSION = ("number", "count", "digest", "key_id", "languages")
APPROVED = ("visibility", "tenants", "terms", "published_at")
LONGEST_README = 2_000  # characters of it that a search by meaning looks at
GROUPS = 8  # of a version's memories: one vector for each
SIGNATURES = RawSQL(
    "(SELECT array_agg(binary_quantize(part))::varbit[] FROM unnest(array_append(contents, vector)) AS part)", []
)


def listing_write(*, actor: Actor, publication: Publication, is_approved: bool = False) -> None:
    """Update the catalogue row of a publication. is_approved: its visibility and terms are approved too.

    A publication without an approval has no row. Without a version, hidden or banned, it keeps its row, but nobody
    finds it. Vectors of another version's memories are erased at once.
    Raises Forbidden. Writes: Listing, OutboxEvent?.
    """
    authorize(actor, Permission.STORE_MANAGE, Target("publication", publication.id, publication.tenant_id))
    with acting(actor):
        row = Listing.objects.select_for_update().filter(tenant_id=actor.tenant_id, id=publication.id).first()
        if row is None and not is_approved:
            return
        row = row or Listing(id=publication.id, tenant_id=actor.tenant_id, pack_id=publication.pack_id)
        before = row.texts
        if row.version_id != publication.version_id:
            row.vector, row.contents, row.signatures, row.model = None, None, None, ""
        _copy_texts(row, publication)
        if is_approved:
            for name in APPROVED:
                setattr(row, name, getattr(publication, name))
        row.save()
        if row.texts != before or not row.model:
            emit(actor=actor, topic=Topic.LISTINGS_WRITTEN, payload={"listing": str(row.id)})


def listings_embed(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Embed the texts of catalogue rows, and group the vectors of the memories of their versions.

    A version without an index of trials by the present model gets one.
    Raises ProviderUnavailable; KeyUnavailable. Writes: Listing …, PackVersion ….
    """
    authorize(actor, Permission.STORE_MANAGE)
    ids = sorted({UUID(str(payload["listing"])) for payload in payloads})
    model = embedder()
    with acting(actor):
        rows = list(Listing.objects.filter(tenant_id=actor.tenant_id, id__in=ids))
        packs = Pack.objects.filter(id__in=[row.pack_id for row in rows])
        readmes = dict(packs.values_list("id", "readme"))
        offered = [row.version_id for row in rows if row.is_offered]
        versions = list(PackVersion.objects.defer(None).defer("sealed", "wordings", "preview").filter(id__in=offered))
        stale = [version for version in versions if version.trial_model != model.name and version.sealed]
        files = [(version, file_open(version), wordings_open(version)) for version in stale]
    if not rows:
        return lambda: None
    vectors = model.embed([_compose_text(row, readmes.get(row.pack_id, "")) for row in rows])
    for version, content, wordings in files:
        version.trial, version.trial_model = trial_seal(version, file_read(content).items, wordings)
    contents = {version.id: _group_memories(version) for version in versions}

    def write() -> None:
        for version in stale:
            same = PackVersion.objects.filter(id=version.id).exclude(sealed=b"")
            same.update(trial=version.trial, trial_model=version.trial_model)
        for row, vector in zip(rows, vectors, strict=True):
            same_row = Listing.objects.filter(tenant_id=actor.tenant_id, id=row.id, texts=row.texts)
            same_row = same_row.filter(version_id=row.version_id, is_offered=row.is_offered)
            same_row.update(vector=vector, contents=contents.get(row.version_id, []), model=model.name)
            same_row.update(signatures=SIGNATURES)

    return write


def _group_memories(version: PackVersion) -> list[HalfVector]:
    """Return the vectors of the groups of a version's memories; none without an index of trials. Raises
    KeyUnavailable."""
    index = trial_open(version)
    return [] if index is None else [HalfVector(group) for group in group_vectors(index.vectors, GROUPS)]


def _compose_text(row: Listing, readme: str) -> str:
    return "\n".join((row.title, row.description, row.topic, ", ".join(row.keywords), readme[:LONGEST_README]))


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
