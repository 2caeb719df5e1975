from django.db import models
from django.db.models.functions import Now

from governance.models.base import TenantModel


class OutboxEvent(TenantModel):
    """An event for a background task, written with the change that needs it. The task's transaction marks it done."""

    topic = models.CharField(max_length=40)
    payload = models.JSONField()
    request_id = models.CharField(max_length=64)
    available_at = models.DateTimeField(db_default=Now())  # of a leased event: when its lease ends
    lease = models.UUIDField(null=True)  # the task that has it; events of one task share theirs
    attempts = models.PositiveIntegerField(default=0, db_default=0)  # runs that began
    done_at = models.DateTimeField(null=True)
    parked_at = models.DateTimeField(null=True)  # a dead letter since then
    last_error = models.CharField(max_length=300, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            models.Index(
                fields=["topic", "tenant", "available_at"],
                name="outbox_open",
                condition=models.Q(done_at__isnull=True, parked_at__isnull=True),
            ),
            models.Index(fields=["lease"], name="outbox_leased", condition=models.Q(lease__isnull=False)),
        ]
