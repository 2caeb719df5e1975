from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from governance.models.base import TenantModel
from governance.vocabulary import SinkKind


class AuditEntry(TenantModel):
    """One recorded action: actor, objects and context. Append-only by privilege and by trigger; has no content."""

    at = models.DateTimeField(db_default=Now(), editable=False)
    principal_kind = models.CharField(max_length=10)
    principal_id = models.UUIDField()
    member_id = models.UUIDField(null=True)
    verb = models.CharField(max_length=40)
    outcome = models.CharField(max_length=10)
    object_type = models.CharField(max_length=40)
    object_ids = ArrayField(models.UUIDField())
    version = models.PositiveIntegerField(null=True)
    before_hash = models.BinaryField(max_length=32, null=True)
    after_hash = models.BinaryField(max_length=32, null=True)
    detail = models.JSONField(default=dict)
    context = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"], name="audit_newest_first")]


class AuditUnsealed(TenantModel):
    """Marks an entry (of the same id) that has no seal yet. A trigger adds the row; sealing deletes it."""


class AuditSeal(TenantModel):
    """A link of the tenant's hash chain, which fixes one entry and all before it. See governance/audit/verifier.py.

    A separate row, so that entries stay append-only. `seq` counts from 1 without a gap.
    """

    seq = models.BigIntegerField()
    entry = models.ForeignKey(
        AuditEntry, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    entry_hash = models.BinaryField(max_length=32)
    previous_hash = models.BinaryField(max_length=32)
    chain_hash = models.BinaryField(max_length=32)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "seq"], name="seal_has_one_place_in_the_chain"),
            models.UniqueConstraint(fields=["tenant", "entry"], name="entry_is_sealed_once"),
        ]


class AuditCheckpoint(TenantModel):
    """The signed state of the chain at one time (Ed25519), for download. The authoritative copy is a file."""

    seq = models.BigIntegerField()
    text = models.TextField()  # the whole checkpoint, as it is downloaded

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "seq"], name="chain_is_signed_once_at_each_seal")]


class AuditSink(TenantModel):
    """A receiver of the sealed audit log, with its progress; entries are sent in the order of their seals."""

    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in SinkKind])
    address = models.CharField(max_length=500)
    sealed_secret = models.BinaryField(null=True)
    delivered_seq = models.BigIntegerField(default=0)  # moves on only once the other side has taken the rows
    failures = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(db_default=Now())
    last_error = models.CharField(max_length=300, blank=True, default="")
    delivered_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["next_at"], name="audit_sink_due", condition=models.Q(removed_at__isnull=True)),
        ]
