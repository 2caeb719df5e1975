from django.db import models

from governance.models.base import TenantModel
from governance.models.tenant import Member
from governance.vocabulary import JobStatus


class Job(TenantModel):
    """A background job with visible progress. Its outbox event has the same id; request and result are sealed."""

    kind = models.CharField(max_length=40)
    status = models.CharField(max_length=10, choices=[(status, status) for status in JobStatus])
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True)  # unknown until the first step has counted
    attempts = models.PositiveIntegerField(default=0)  # of the present step
    dead_letter = models.BooleanField(default=False)
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    principal_kind = models.CharField(max_length=10)
    principal_id = models.UUIDField()
    context = models.JSONField(default=dict)  # purpose, session, task and address of the request
    settings = models.JSONField(default=dict)  # ids, numbers and filters, never content
    state = models.JSONField(default=dict)  # where the next step begins
    sealed_request = models.BinaryField(default=b"")  # content; empty once nobody needs it any more
    sealed_result = models.BinaryField(null=True)
    error = models.JSONField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    undo_until = models.DateTimeField(null=True)
    kept_until = models.DateTimeField(null=True)  # of a failed job: how long its request waits to be tried again

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "-id"], name="governance_job_newest_first"),
            models.Index(
                fields=["tenant", "kind"],
                name="governance_job_open",
                condition=models.Q(status__in=["pending", "running", "cancelling"]),
            ),
            models.Index(
                fields=["tenant", "-id"], name="governance_job_dead_letter", condition=models.Q(dead_letter=True)
            ),
        ]
