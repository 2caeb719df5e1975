from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from governance.models.base import TenantModel
from governance.vocabulary import DeliveryStatus


class Webhook(TenantModel):
    """An address of the tenant that is called after certain events. Its secrets are sealed."""

    url = models.CharField(max_length=500)
    events = ArrayField(models.CharField(max_length=40))  # verbs of the audit log, or areas as in `memory.*`
    filters = models.JSONField(default=dict)
    enabled = models.BooleanField(default=True)
    sealed_secret = models.BinaryField(null=True)  # null once the webhook is removed
    sealed_previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)  # in a row; deliveries pause until next_at
    next_at = models.DateTimeField(db_default=Now())
    removed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["tenant"], name="webhook_active", condition=models.Q(removed_at__isnull=True))]


class WebhookDelivery(TenantModel):
    """One event for one webhook. A trigger on the audit log writes it in the transaction of the event."""

    webhook = models.ForeignKey(
        Webhook, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    entry_id = models.UUIDField()  # of the audit entry; the id of the event for its receiver
    event = models.CharField(max_length=40)
    object_type = models.CharField(max_length=40)
    object_ids = ArrayField(models.UUIDField())
    version = models.PositiveIntegerField(null=True)
    at = models.DateTimeField()
    status = models.CharField(
        max_length=10, choices=[(status, status) for status in DeliveryStatus], db_default=DeliveryStatus.PENDING
    )
    attempts = models.PositiveIntegerField(default=0, db_default=0)
    due_since = models.DateTimeField(db_default=Now())  # deliveries end a day later; a replay sets it anew
    next_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=300, blank=True, default="", db_default="")
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["webhook", "-id"], name="webhook_delivery_newest")]
