from django.db import models

from governance.models.base import TenantModel
from governance.models.tenant import Member


class Pipeline(TenantModel):
    """Several operations that a member stored under a name, to run as one.

    sealed: name and steps, under the member's key, because their searches may reveal personal matters.
    """

    member = models.ForeignKey(
        Member, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    sealed = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "member", "id"], name="pipeline_by_member")]
