from typing import ClassVar

from django.db import models

from governance.models.base import TenantModel
from governance.models.tenant import Member


class Upload(TenantModel):
    """A file that a member uploaded and did not import yet, or a part of it. Deleted after a day
    (vault/exchange/uploads.py).

    form: an ImportFormat, or empty where it is not known yet; sealed: the name and bytes of the file. part_of: of a
    further part of a file, the first one; of a part of what an import job stores, the job. number: of the part, from 0.
    """

    member = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    form = models.CharField(max_length=16)
    sealed = models.BinaryField()
    part_of = models.UUIDField(null=True)
    number = models.PositiveIntegerField(default=0)
    size = models.PositiveIntegerField(default=0)  # bytes before sealing

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "part_of", "number"], name="part_is_stored_once"),
        ]

    objects: ClassVar[models.Manager["Upload"]]
