from django.contrib.postgres.fields import ArrayField
from django.db import models

from governance.models.base import TenantModel
from governance.models.tenant import ApiKey


class ApiKeyRequest(TenantModel):
    """One answered request of an API key. Rows are deleted after KEY_REQUESTS_DAYS, the oldest also by number.

    route: the pattern of the address, without ids and query.
    """

    key = models.ForeignKey(ApiKey, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    at = models.DateTimeField()
    method = models.CharField(max_length=8)
    route = models.CharField(max_length=200)
    status = models.PositiveSmallIntegerField()
    milliseconds = models.PositiveIntegerField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "key", "-id"], name="key_request_newest_first")]


class ApiKeyDay(TenantModel):
    """The requests of an API key on one day (UTC), counted in the buckets of `governance.apikeys.rules.BOUNDS`.

    errors: answers with a status of 400 or more. Rows are deleted after KEY_DAYS_DAYS.
    """

    key = models.ForeignKey(ApiKey, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    day = models.DateField()
    errors = models.PositiveIntegerField()
    buckets = ArrayField(models.PositiveIntegerField())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "key", "day"], name="key_day_is_unique")]
