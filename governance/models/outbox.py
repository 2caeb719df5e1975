from django.db import models
from django.db.models.functions import Now

from governance.models.base import TenantModel


class OutboxEvent(TenantModel):
    """Work that a committed write asks for. Done only in the transaction of the task that did it."""

    topic = models.CharField(max_length=40)
    payload = models.JSONField()
    request_id = models.CharField(max_length=64)
    available_at = models.DateTimeField(db_default=Now())
    attempts = models.PositiveIntegerField(default=0, db_default=0)
    done_at = models.DateTimeField(null=True)
    parked_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=300, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            models.Index(
                fields=["available_at"],
                name="outbox_due",
                condition=models.Q(done_at__isnull=True, parked_at__isnull=True),
            )
        ]
