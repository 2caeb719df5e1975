"""Webhooks, and the trigger on the audit log that writes their deliveries."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import governance.ids
import governance.vocabulary
from governance.tenancy_sql import tenant_table

ANNOUNCE = """
CREATE FUNCTION governance_webhooks_announce() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  hook uuid;
  delivery uuid;
BEGIN
  FOR hook IN SELECT one.id FROM public.governance_webhook AS one
    WHERE one.tenant_id = NEW.tenant_id AND one.removed_at IS NULL AND one.enabled AND NEW.verb = ANY (one.events)
  LOOP
    delivery := uuidv7();
    INSERT INTO public.governance_webhookdelivery
      (id, tenant_id, webhook_id, entry_id, event, object_type, object_ids, version, at)
      VALUES (delivery, NEW.tenant_id, hook, NEW.id, NEW.verb, NEW.object_type, NEW.object_ids, NEW.version, NEW.at);
    INSERT INTO public.governance_outboxevent (id, tenant_id, topic, payload, request_id)
      VALUES (uuidv7(), NEW.tenant_id, 'webhook.deliver', jsonb_build_object('delivery', delivery), NEW.request_id);
    PERFORM pg_notify('memos_outbox', '');
  END LOOP;
  RETURN NULL;
END $$
"""
ANNOUNCED = """
CREATE TRIGGER governance_auditentry_is_announced AFTER INSERT ON governance_auditentry
FOR EACH ROW WHEN (NEW.outcome = 'done') EXECUTE FUNCTION governance_webhooks_announce()
"""


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0018_noted_rotations"),
    ]

    operations = [
        migrations.CreateModel(
            name="Webhook",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("url", models.CharField(max_length=500)),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), size=None),
                ),
                ("filters", models.JSONField(default=dict)),
                ("enabled", models.BooleanField(default=True)),
                ("sealed_secret", models.BinaryField(null=True)),
                ("sealed_previous_secret", models.BinaryField(null=True)),
                ("previous_until", models.DateTimeField(null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.tenant",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.UUIDField(default=governance.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("entry_id", models.UUIDField()),
                ("event", models.CharField(max_length=40)),
                ("object_type", models.CharField(max_length=40)),
                ("object_ids", django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ("version", models.PositiveIntegerField(null=True)),
                ("at", models.DateTimeField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            (
                                governance.vocabulary.DeliveryStatus["PENDING"],
                                governance.vocabulary.DeliveryStatus["PENDING"],
                            ),
                            (
                                governance.vocabulary.DeliveryStatus["DELIVERED"],
                                governance.vocabulary.DeliveryStatus["DELIVERED"],
                            ),
                            (
                                governance.vocabulary.DeliveryStatus["FAILED"],
                                governance.vocabulary.DeliveryStatus["FAILED"],
                            ),
                        ],
                        db_default=governance.vocabulary.DeliveryStatus["PENDING"],
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(db_default=0, default=0)),
                ("due_since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("next_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, db_default="", default="", max_length=300)),
                ("delivered_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.tenant",
                    ),
                ),
                (
                    "webhook",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="governance.webhook",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="webhook",
            index=models.Index(
                condition=models.Q(("removed_at__isnull", True)), fields=["tenant"], name="webhook_active"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["webhook", "-id"], name="webhook_delivery_newest"),
        ),
        tenant_table("governance_webhook"),
        tenant_table(
            "governance_webhookdelivery",
            rights="SELECT, INSERT, UPDATE, DELETE",
            references=[("webhook_id", "governance_webhook")],
        ),
        RunSQL(ANNOUNCE, "DROP FUNCTION governance_webhooks_announce() CASCADE"),
        RunSQL(ANNOUNCED, RunSQL.noop),
    ]
