from django.db import models
from pgvector.django import HalfVectorField


class Posting(models.Model):
    """A keyed token of a cube: a word with its frequency, or a mark to filter by (frequency 0).

    Derived rows: they live and die with their cube, and bear no foreign key because checking one for each word would
    cost more than the write itself. `length`: words of the cube, for BM25.
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


class Embedding(models.Model):
    """The vector of a cube's current version by one model; cosine distance. Follows the write through the outbox."""

    pk = models.CompositePrimaryKey("tenant_id", "cube_id", "model")
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    cube = models.ForeignKey(
        "vault.Cube", on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    model = models.CharField(max_length=100)
    version = models.PositiveIntegerField()
    vector = HalfVectorField()
