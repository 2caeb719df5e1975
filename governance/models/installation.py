"""Rows of the installation itself, which belong to no tenant."""

from uuid import UUID

from django.db import models
from django.db.models.functions import Now


class KeyStoreNote(models.Model):
    """The first row has the id of the key store that sealed this database's content; other rows the ids of key
    rotations.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    store_id: "models.UUIDField[UUID, UUID]" = models.UUIDField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id__gte=1), name="key_store_is_note_one")]


class Heartbeat(models.Model):
    """The last heartbeat of a part of the product (`dispatcher`, `sealer`, `beat`)."""

    part = models.CharField(primary_key=True, max_length=20)
    at = models.DateTimeField(db_default=Now())
