from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import BooleanField, F, Func, Value

from governance.models.base import TenantModel
from governance.models.tenant import Member
from vault.vocabulary import HoldKind

STANDS = Func(F("tenant_id"), F("id"), function="vault_hold_stands", output_field=BooleanField())


class HoldQuerySet(models.QuerySet["Hold"]):
    def with_active_flag(self) -> "HoldQuerySet":
        """Annotate each row with `stands`: true while the hold is active, as the database function vault_hold_stands
        decides."""
        return self.annotate(stands=STANDS)

    def active(self) -> "HoldQuerySet":
        return self.filter(STANDS)

    def active_at(self, at: datetime) -> "HoldQuerySet":
        """Select the holds that stood at a time."""
        moment = Value(at, output_field=models.DateTimeField())
        return self.filter(
            Func(F("tenant_id"), F("id"), moment, function="vault_hold_stands", output_field=BooleanField())
        )


class Hold(TenantModel):
    """A freeze or a legal hold. Insert-only: approvals end it (HoldReleaseApproval), never a change of the row."""

    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in HoldKind])
    maker = models.ForeignKey(
        Member, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    subject_id = models.UUIDField(null=True)  # no foreign key: the row outlives the subject, once released
    sealed = models.BinaryField()  # reason and filters

    objects: ClassVar[HoldQuerySet] = HoldQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "kind"], name="hold_by_kind"),
            models.Index(fields=["tenant", "subject_id"], name="hold_by_subject", condition=~models.Q(subject_id=None)),
        ]


class HoldCube(TenantModel):
    """A cube under a hold, from its creation or later. Insert-only; after the release it may outlive the cube."""

    hold = models.ForeignKey(Hold, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    cube_id = models.UUIDField()

    class Meta:
        constraints = [
            # Every write of a cube looks holds up by (tenant, cube_id), the prefix of this index.
            models.UniqueConstraint(fields=["tenant", "cube_id", "hold"], name="cube_is_under_a_hold_once")
        ]
        indexes = [models.Index(fields=["tenant", "hold"], name="cubes_of_hold")]


class HoldReleaseApproval(TenantModel):
    """A member's approval of ending a hold. A freeze ends with one, a legal hold with those of two different members.

    transaction: set by a trigger, so that no two approvals of a hold can come from one transaction.
    """

    hold = models.ForeignKey(Hold, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    member = models.ForeignKey(
        Member, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    transaction = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "hold", "member"], name="member_approves_a_release_once"),
            models.UniqueConstraint(
                fields=["tenant", "hold", "transaction"], name="transaction_approves_a_release_once"
            ),
        ]
