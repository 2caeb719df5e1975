from typing import ClassVar

from django.db import models

from governance.models.base import TenantModel
from governance.models.tenant import Member


class Upload(TenantModel):
    """A file that a member uploaded and did not import yet. Deleted after a day (vault/exchange/uploads.py).

    form: an ImportFormat; sealed: the name and bytes of the file.
    """

    member = models.ForeignKey(
        Member, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    form = models.CharField(max_length=16)
    sealed = models.BinaryField()

    objects: ClassVar[models.Manager["Upload"]]
