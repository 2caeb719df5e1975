from django.db import models
from django.db.models.functions import Now
from pgvector.django import HalfVectorField


class Posting(models.Model):
    """A keyed token of a cube: a word with its frequency, or a mark to filter by (frequency 0).

    Derived rows: they live and die with their cube, and bear no foreign key because checking one for each word would
    cost more than the write itself. Everything a ranking needs stands in the key's index: `length`, the words of the
    cube; its namespace; its place in its session.
    """

    pk = models.CompositePrimaryKey("tenant_id", "term", "cube_id")
    tenant = models.ForeignKey(
        "governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    term = models.BigIntegerField()
    cube_id = models.UUIDField()
    namespace_id = models.UUIDField()
    frequency = models.PositiveSmallIntegerField()
    length = models.PositiveSmallIntegerField()
    session_token = models.BigIntegerField(null=True)
    position = models.PositiveIntegerField(null=True)


class Embedding(models.Model):
    """The vector of a cube's current version by one model; cosine distance. Follows the write through the outbox."""

    pk = models.CompositePrimaryKey("tenant_id", "cube_id", "model")
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    cube = models.ForeignKey(
        "vault.Cube", on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    model = models.CharField(max_length=100)
    version = models.PositiveIntegerField()
    namespace_id = models.UUIDField()
    vector = HalfVectorField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "namespace_id"], name="embedding_by_namespace")]


class NamespaceSize(models.Model):
    """How many cubes and words a namespace has, for BM25 (vault/cubes/sizes.py). What is added is counted by a job: a
    row that every add changed would make writers wait for each other."""

    pk = models.CompositePrimaryKey("tenant_id", "namespace_id")
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    namespace = models.ForeignKey(
        "vault.Namespace", on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    cubes = models.PositiveIntegerField()
    words = models.PositiveBigIntegerField()
    refreshed_at = models.DateTimeField(db_default=Now())


class PackedWord(models.Model):
    """A word whose postings of the cubes up to `until` are packed, or are about to be (vault/cubes/packing.py)."""

    pk = models.CompositePrimaryKey("tenant_id", "term")
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    term = models.BigIntegerField()
    until = models.UUIDField()
    is_packed = models.BooleanField(default=False, db_default=False)

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "until"], name="packed_word_by_until")
        ]  # each write asks for the last


class PackedPostings(models.Model):
    """The postings of a packed word in a namespace, 32 bytes each, in the order of their cubes (ENTRY)."""

    pk = models.CompositePrimaryKey("tenant_id", "term", "namespace_id")
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    term = models.BigIntegerField()
    namespace = models.ForeignKey(
        "vault.Namespace", on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    postings = models.BinaryField()


class Packing(models.Model):
    """How many cubes a tenant had when all its words were placed anew, and how many words are; when last."""

    tenant = models.OneToOneField("governance.Tenant", on_delete=models.DO_NOTHING, primary_key=True, related_name="+")
    cubes = models.PositiveBigIntegerField()
    words = models.PositiveIntegerField()
    packed_at = models.DateTimeField(db_default=Now())
