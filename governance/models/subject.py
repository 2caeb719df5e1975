from django.db import models

from governance.models.base import TenantModel


class DataSubject(TenantModel):
    """The person a memory is about, by the tenant's own reference: sealed, and found by its keyed token.

    When an erasure starts, the token becomes random: the same reference then makes another subject.
    """

    reference_token = models.BinaryField(max_length=32)
    sealed_reference = models.BinaryField()  # empty once the subject is erased
    erasing_since = models.DateTimeField(null=True)
    erased_at = models.DateTimeField(null=True)
    receipts = models.JSONField(default=list)  # of its erasures, signed; ids, counts and times

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "reference_token"], name="subject_reference_is_unique")
        ]
