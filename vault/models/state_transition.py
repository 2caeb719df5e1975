from django.db import models

from governance.models.base import TenantModel
from vault.models.cube import Cube
from vault.vocabulary import State


class StateTransition(TenantModel):
    """A transition of a memory from one state to another, numbered from 1. Insert-only; deleted with its memory."""

    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    step = models.PositiveIntegerField()
    from_state = models.CharField(max_length=12, choices=[(state, state) for state in State])
    to_state = models.CharField(max_length=12, choices=[(state, state) for state in State])
    principal_kind = models.CharField(max_length=10)
    principal_id = models.UUIDField()
    reason = models.CharField(max_length=500, blank=True, default="")
    job_id = models.UUIDField(null=True)  # no foreign key: the row outlives the job

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "cube", "step"], name="transition_step_is_unique")]
