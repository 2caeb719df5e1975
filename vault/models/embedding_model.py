from django.db import models
from django.db.models.functions import Now


class EmbeddingModel(models.Model):
    """The embedding model that a tenant's searches use. Created with the first vector; re-embedding changes it."""

    tenant = models.OneToOneField("governance.Tenant", primary_key=True, on_delete=models.DO_NOTHING, related_name="+")
    model = models.CharField(max_length=100)
    since = models.DateTimeField(db_default=Now())
