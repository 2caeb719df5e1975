from django.db import models

from governance.models.base import TenantModel
from governance.models.tenant import Member
from vault.vocabulary import JobKind, JobStatus


class Job(TenantModel):
    """Work that outlives its request. What was asked and what came of it are sealed."""

    kind = models.CharField(max_length=40, choices=[(kind, kind) for kind in JobKind])
    status = models.CharField(max_length=10, choices=[(status, status) for status in JobStatus])
    progress = models.FloatField(default=0.0)
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    principal_kind = models.CharField(max_length=10)
    principal_id = models.UUIDField()
    context = models.JSONField(default=dict)  # purpose, session, task and address of the request
    sealed_request = models.BinaryField()  # empty once nobody needs it any more
    sealed_result = models.BinaryField(null=True)
    error = models.JSONField(null=True)
    finished_at = models.DateTimeField(null=True)
    kept_until = models.DateTimeField(null=True)  # of a failed job: how long its request waits to be tried again

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"], name="job_newest_first")]
