from django.db import models

from governance.models.base import TenantModel
from governance.models.job import Job


class Schedule(TenantModel):
    """Jobs of one kind at certain times; each runs with the rights of the schedule's owner."""

    kind = models.CharField(max_length=40)
    cron = models.CharField(max_length=100)
    timezone = models.CharField(max_length=64)
    enabled = models.BooleanField(default=True)
    settings = models.JSONField(default=dict)
    principal_kind = models.CharField(max_length=10)
    principal_id = models.UUIDField()
    next_run_at = models.DateTimeField(null=True)
    last_job = models.ForeignKey(
        Job, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    class Meta:
        indexes = [
            models.Index(fields=["next_run_at"], name="schedule_due", condition=models.Q(enabled=True)),
        ]
