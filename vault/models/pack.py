from typing import ClassVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from pgvector.django import BitField, HalfVectorField

from governance.models.base import TenantModel
from governance.models.tenant import Member
from vault.vocabulary import PackState, PackTopic, PublicationState, Visibility


class Pack(TenantModel):
    """A set of memories that a tenant offers under one name. Its texts are meant for others and are not sealed.

    The memories belong to its versions.
    """

    name = models.CharField(max_length=60)
    title = models.CharField(max_length=120)
    description = models.CharField(max_length=300, blank=True, default="")
    readme = models.TextField(blank=True, default="")
    licence = models.CharField(max_length=60, blank=True, default="")
    topic = models.CharField(max_length=12, choices=[(topic, topic) for topic in PackTopic])
    authors = ArrayField(models.CharField(max_length=100), default=list)
    keywords = ArrayField(models.CharField(max_length=100), default=list)
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    objects: ClassVar[models.Manager["Pack"]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="pack_name_is_unique_in_tenant")]

    def __str__(self) -> str:
        return self.name


class PackVersionManager(models.Manager["PackVersion"]):
    """Leaves out the columns that only a page and trials of the store read."""

    def get_queryset(self) -> models.QuerySet["PackVersion"]:
        return super().get_queryset().defer("preview", "trial")


class PackVersion(TenantModel):
    """One version of a pack: its signed file, sealed, and the result of the scan as ids and counts.

    digest: SHA-256 of the memories, in hex; key_id: of the signing key. subjects: data subjects of anonymised memories;
    erasing a subject erases the version. wordings: the marked sentences, sealed (vault/store/wordings.py). preview,
    trial: excerpts of the verified file, sealed; trial_model: made the vectors in `trial` (vault/store/excerpts.py).
    published_at: null until other tenants may find the version.
    """

    pack = models.ForeignKey(Pack, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    number = models.CharField(max_length=20)
    parts = ArrayField(models.PositiveIntegerField(), size=3)  # of the number, to sort by
    state = models.CharField(max_length=10, choices=[(state, state) for state in PackState])
    changelog = models.CharField(max_length=2000, blank=True, default="")
    reason = models.CharField(max_length=300, blank=True, default="")  # why it was deprecated or yanked
    count = models.PositiveIntegerField(default=0)
    size = models.PositiveIntegerField(default=0)  # bytes of the file
    digest = models.CharField(max_length=64, blank=True, default="")
    key_id = models.CharField(max_length=16, blank=True, default="")
    languages = ArrayField(models.CharField(max_length=8), default=list)
    report = models.JSONField(default=dict)
    subjects = ArrayField(models.UUIDField(), default=list)
    sealed = models.BinaryField(default=bytes)
    wordings = models.BinaryField(default=bytes, db_default=b"")
    preview = models.BinaryField(default=bytes, db_default=b"")
    trial = models.BinaryField(default=bytes, db_default=b"")
    trial_model = models.CharField(max_length=100, blank=True, default="", db_default="")
    published_at = models.DateTimeField(null=True)
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    objects: ClassVar[PackVersionManager] = PackVersionManager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "pack", "number"], name="pack_number_is_unique")]


class Publication(TenantModel):
    """The offer of a pack. version: the newest one that others find; waiting: one that another member must approve.

    terms: the subscribers' obligations in a contract. stars, ratings, subscribers: updated when they change.
    """

    pack = models.ForeignKey(Pack, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    version = models.ForeignKey(
        PackVersion, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    waiting = models.ForeignKey(
        PackVersion, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    state = models.CharField(max_length=10, choices=[(state, state) for state in PublicationState])
    visibility = models.CharField(max_length=12, choices=[(visibility, visibility) for visibility in Visibility])
    tenants = ArrayField(models.UUIDField(), default=list)
    terms = models.JSONField(default=dict)
    reason = models.CharField(max_length=300, blank=True, default="")
    requested_by = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    approved_by = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    published_at = models.DateTimeField(null=True)
    stars = models.PositiveIntegerField(default=0)
    ratings = models.PositiveIntegerField(default=0)
    subscribers = models.PositiveIntegerField(default=0)

    objects: ClassVar[models.Manager["Publication"]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "pack"], name="pack_is_published_once")]


OFFERED = Q(is_offered=True)


class SignatureField(BitField):
    """The signs of a vector's numbers as bits, which PostgreSQL makes and compares."""

    def db_type(self, connection: object) -> str:
        return "bit varying"


class ListingManager(models.Manager["Listing"]):
    """Leaves out the vectors, which only statements compare."""

    def get_queryset(self) -> models.QuerySet["Listing"]:
        return super().get_queryset().defer("vector", "contents", "signatures")


class Listing(TenantModel):
    """A publication in the catalogue. A row-level policy lets each tenant read the rows offered to it.

    The publisher writes the row and copies fields of pack and version into it (vault/store/listings.py). id: of the
    publication; tenant: the publisher. visibility, tenants, terms: as approved. texts: the searched texts, in lower
    case. vector: of its texts by `model`, for search by meaning; contents: of groups of its version's memories, null
    before the first; signatures: of all these, to compare first. They are made after the write by an outbox event.
    rating: mean stars, 0 before the first.
    """

    publisher = models.CharField(max_length=200)
    publisher_slug = models.CharField(max_length=63)
    pack = models.ForeignKey(Pack, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    version = models.ForeignKey(
        PackVersion, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    name = models.CharField(max_length=60)
    title = models.CharField(max_length=120)
    description = models.CharField(max_length=300)
    licence = models.CharField(max_length=60)
    topic = models.CharField(max_length=12)
    keywords = ArrayField(models.TextField())
    languages = ArrayField(models.TextField())
    texts = models.TextField()
    vector = HalfVectorField(null=True)
    contents = ArrayField(HalfVectorField(), null=True)
    signatures = ArrayField(SignatureField(), null=True)
    model = models.CharField(max_length=100, blank=True, default="", db_default="")
    number = models.CharField(max_length=20)
    count = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    key_id = models.CharField(max_length=16)
    is_offered = models.BooleanField()
    visibility = models.CharField(max_length=12)
    tenants = ArrayField(models.UUIDField())
    terms = models.JSONField()
    rating = models.FloatField()
    ratings = models.PositiveIntegerField()
    subscribers = models.PositiveIntegerField()
    published_at = models.DateTimeField()

    objects: ClassVar[ListingManager] = ListingManager()

    class Meta:
        indexes = [
            models.Index(F("subscribers").desc(), F("id").desc(), name="listing_by_use", condition=OFFERED),
            models.Index(F("rating").desc(), F("id").desc(), name="listing_by_rating", condition=OFFERED),
            models.Index(F("published_at").desc(), F("id").desc(), name="listing_by_time", condition=OFFERED),
            models.Index(fields=["publisher_slug", "name"], name="listing_by_name"),
        ]

    @property
    def publisher_id(self) -> UUID:
        return self.tenant_id

    @property
    def full_name(self) -> str:
        return f"{self.publisher_slug}/{self.name}"
