from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from governance.models.base import TenantModel


class AuditEntry(TenantModel):
    """Who did what to which objects, in what context. Append-only by privilege and by trigger; holds no content."""

    at = models.DateTimeField(db_default=Now(), editable=False)
    principal_kind = models.CharField(max_length=10)
    principal_id = models.UUIDField()
    member_id = models.UUIDField(null=True)
    verb = models.CharField(max_length=40)
    outcome = models.CharField(max_length=10)
    object_type = models.CharField(max_length=40)
    object_ids = ArrayField(models.UUIDField())
    version = models.PositiveIntegerField(null=True)
    before_hash = models.BinaryField(max_length=32, null=True)
    after_hash = models.BinaryField(max_length=32, null=True)
    detail = models.JSONField(default=dict)
    context = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"], name="audit_newest_first")]
