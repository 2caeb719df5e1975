from django.db import models

from governance.models.base import TenantModel
from governance.models.job import Job


class ActionItem(TenantModel):
    """A memory that a bulk action changed, for the undo, or that an export contains.

    cube_id: no foreign key, since the memory may be erased; for a copy action, the new copy. version: after the action.
    layer: before a promotion.
    """

    job = models.ForeignKey(Job, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    cube_id = models.UUIDField()
    version = models.PositiveIntegerField()
    layer = models.CharField(max_length=12, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "job", "cube_id"], name="action_names_a_memory_once"),
        ]
