from typing import ClassVar

from django.db import models

from governance.models.base import TenantModel
from governance.models.job import Job
from vault.vocabulary import SyncDirection


class SyncPeer(TenantModel):
    """A namespace of another installation with which a local namespace is synchronized.

    address: of the other installation, without a path. sealed_key: an API key of that installation. last_job: the
    newest sync job.
    """

    name = models.CharField(max_length=100)
    address = models.CharField(max_length=500)
    sealed_key = models.BinaryField()
    namespace = models.CharField(max_length=200)
    remote_namespace = models.CharField(max_length=200)
    direction = models.CharField(max_length=4, choices=[(direction, direction) for direction in SyncDirection])
    last_job = models.ForeignKey(
        Job, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    objects: ClassVar[models.Manager["SyncPeer"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="sync_peer_has_a_name_of_its_own"),
        ]


class SyncLink(TenantModel):
    """A local memory and its counterpart at a peer, with the versions at which both were last equal.

    cube_id is no foreign key, so that the next sync does not bring back a memory that was purged here.
    """

    peer = models.ForeignKey(
        SyncPeer, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    cube_id = models.UUIDField()
    remote_id = models.UUIDField()
    version = models.PositiveIntegerField()
    remote_version = models.PositiveIntegerField()

    objects: ClassVar[models.Manager["SyncLink"]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "peer", "cube_id"], name="memory_has_one_counterpart"),
            models.UniqueConstraint(fields=["tenant", "peer", "remote_id"], name="counterpart_is_linked_once"),
        ]
