from django.db import models
from django.db.models.functions import Now

from governance.models.base import TenantModel
from governance.vocabulary import Measure, PolicyKind, QuotaTargetKind


class Policy(TenantModel):
    """A rule of the tenant about its memory. `version` numbers the current document; kind and name never change."""

    kind = models.CharField(max_length=12, choices=[(kind, kind) for kind in PolicyKind])
    name = models.CharField(max_length=100)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="policy_name_is_unique")]

    def __str__(self) -> str:
        return self.name


class PolicyVersion(TenantModel):
    """One version of a policy's content. Append-only by privilege and by trigger."""

    policy = models.ForeignKey(
        Policy, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    number = models.PositiveIntegerField()
    enabled = models.BooleanField()
    document = models.JSONField()
    reason = models.CharField(max_length=500, blank=True, default="")
    principal_kind = models.CharField(max_length=10)
    principal_id = models.UUIDField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "policy", "number"], name="policy_version_number_is_unique")
        ]


class Usage(TenantModel):
    """The used part of a quota, stored only while a quota limits it. An upper bound, which is recounted when reached.

    `epoch`: the policy epoch of the last count; `month`: of model tokens, which start at 0 each month.
    """

    holder_kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in QuotaTargetKind])
    holder_id = models.UUIDField()
    measure = models.CharField(max_length=30, choices=[(measure, measure) for measure in Measure])
    used = models.BigIntegerField(default=0, db_default=0)
    epoch = models.PositiveBigIntegerField(default=0, db_default=0)
    month = models.DateField(null=True)
    counted_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "holder_kind", "holder_id", "measure"], name="usage_is_unique_for_holder"
            )
        ]
