"""Rows of the installation itself, which belong to no tenant."""

from uuid import UUID

from django.db import models
from django.db.models.functions import Now


class KeyStoreNote(models.Model):
    """Row 1: the id of the key store that this database's content is sealed with. Others: rotations of its keys."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    store_id: "models.UUIDField[UUID, UUID]" = models.UUIDField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id__gte=1), name="key_store_is_note_one")]


class Heartbeat(models.Model):
    """The last time at which a part of the product (`dispatcher`, `sealer`, `beat`) was seen at work."""

    part = models.CharField(primary_key=True, max_length=20)
    at = models.DateTimeField(db_default=Now())
