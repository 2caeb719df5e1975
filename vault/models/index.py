from django.db import models
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from pgvector.django import HalfVectorField


class IndexedFields(models.Model):
    """Fields of a cube that a search filters by, copied into each index so that a filter reads only the index.

    layer, type: numbers of vault/index/facets.py. happened_at: the event's time, else the time of storage.
    """

    namespace_id = models.UUIDField()
    layer = models.PositiveSmallIntegerField()
    type = models.PositiveSmallIntegerField()
    persona_id = models.UUIDField(null=True)
    happened_at = models.DateTimeField()

    class Meta:
        abstract = True


# 32 bytes of a word: its cube; its session; its position (32 bits), length (16) and frequency (16). NULL for a mark.
ENTRY = (
    "CASE WHEN frequency > 0 THEN uuid_send(cube_id) || int8send(coalesce(session_token, 0)) || "
    "int8send((coalesce(position, 0)::bigint << 32) | (length::bigint << 16) | frequency) END"
)


class KeyedTerm(IndexedFields):
    """A keyed token of a cube: a word with its frequency, or a mark to filter by (frequency 0).

    Derived rows without foreign keys: checking one for each word would cost more than the write itself. The primary
    key's index includes the columns that a search reads. length: the cube's number of words. entry: the posting in
    binary.
    """

    pk = models.CompositePrimaryKey("tenant_id", "term", "cube_id")
    tenant = models.ForeignKey(
        "governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    term = models.BigIntegerField()
    cube_id = models.UUIDField()
    frequency = models.PositiveSmallIntegerField()
    length = models.PositiveSmallIntegerField()
    session_token = models.BigIntegerField(null=True)
    position = models.PositiveIntegerField(null=True)
    entry = models.GeneratedField(
        expression=RawSQL(ENTRY, []), output_field=models.BinaryField(null=True), db_persist=True
    )

    class Meta:
        abstract = True


class Posting(KeyedTerm):
    """A term of a searchable cube."""


class ArchivedPosting(KeyedTerm):
    """A term of an archived cube: read only by a search that includes archived memories."""


WHOLE = 0  # the part of a vector of a whole text


class Embedding(IndexedFields):
    """The vector of a cube's current version by one model, for cosine distance. An outbox event creates it after the
    write. part: WHOLE, or of a long text also the passages of it, counted from 1 (vault/embeddings/passages.py).
    """

    pk = models.CompositePrimaryKey("tenant_id", "cube_id", "model", "part")
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    cube = models.ForeignKey(
        "vault.Cube", on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    model = models.CharField(max_length=100)
    part = models.PositiveSmallIntegerField(default=WHOLE, db_default=WHOLE)
    version = models.PositiveIntegerField()
    vector = HalfVectorField()

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "namespace_id"], name="embedding_by_namespace"),
            models.Index(fields=["tenant", "persona_id"], name="embedding_by_persona"),
            models.Index(fields=["tenant", "layer", "type"], name="embedding_by_layer"),
            models.Index(fields=["tenant", "happened_at"], name="embedding_by_time"),
        ]


class NamespaceSize(models.Model):
    """The number of cubes and words of a namespace, for BM25 (vault/index/statistics.py).

    A job counts new cubes: if every write changed this row, writers would wait for each other.
    """

    pk = models.CompositePrimaryKey("tenant_id", "namespace_id")
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    namespace = models.ForeignKey(
        "vault.Namespace", on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    cubes = models.PositiveIntegerField()
    words = models.PositiveBigIntegerField()
    refreshed_at = models.DateTimeField(db_default=Now())
