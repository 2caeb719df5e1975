from django.contrib.postgres.fields import ArrayField
from django.db import models

from governance.models.base import TenantModel


class IdempotencyKey(TenantModel):
    """The stored reply to a POST, sealed. It commits with the effect of the POST, and is deleted with the objects in
    it.
    """

    principal_id = models.UUIDField()
    key = models.CharField(max_length=255)
    request_hash = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField()
    sealed_reply = models.BinaryField()
    object_ids = ArrayField(models.UUIDField(), default=list)  # whose content the reply shows

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "principal_id", "key"], name="idempotency_key_is_unique_for_principal"
            )
        ]
