from django.db import models

from governance.models.base import TenantModel
from governance.models.tenant import Member
from vault.models.namespace import Namespace
from vault.vocabulary import Counted


class DailyCount(TenantModel):
    """A count of one day (UTC), so that a page can show it without a scan.

    value: the counted value, such as a layer. namespace None: not by namespace. member: the only reader of the counted
    rows; None: every reader of the namespace.
    """

    day = models.DateField()
    name = models.CharField(max_length=16, choices=[(name, name) for name in Counted])
    value = models.CharField(max_length=40)
    namespace = models.ForeignKey(
        Namespace, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    count = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "name", "day"], name="daily_count_by_day")]
