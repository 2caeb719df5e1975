from django.db import models
from django.db.models.functions import Now


class EmbeddingModel(models.Model):
    """The embedding model that a tenant's searches use. Created with the first vector; re-embedding changes it.

    vector_index: the name of the index outside PostgreSQL that gets copies of the vectors, empty: none.
    is_index_filled: it has all of them, so that searches may ask it (docs/decisions/0094).
    """

    tenant = models.OneToOneField("governance.Tenant", primary_key=True, on_delete=models.DO_NOTHING, related_name="+")
    model = models.CharField(max_length=100)
    since = models.DateTimeField(db_default=Now())
    vector_index = models.CharField(max_length=40, blank=True, default="", db_default="")
    is_index_filled = models.BooleanField(default=False, db_default=False)
