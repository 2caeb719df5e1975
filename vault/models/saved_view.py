from django.db import models

from governance.models.base import TenantModel
from governance.models.tenant import Member


class SavedView(TenantModel):
    """A search or filter of the list of memories that a member saved under a name.

    sealed: name and query, under the member's key, because a search may reveal personal matters.
    """

    member = models.ForeignKey(
        Member, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    sealed = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "member", "id"], name="saved_view_by_member")]
