from django.db import models

from governance.models.base import TenantModel


class DataSubject(TenantModel):
    """The human a memory is about, by the tenant's own reference: sealed, and findable by its keyed token alone."""

    reference_token = models.BinaryField(max_length=32)
    sealed_reference = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "reference_token"], name="subject_reference_is_unique")
        ]
