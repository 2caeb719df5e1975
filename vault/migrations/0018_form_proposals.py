"""Proposals to make caches and adapters of memories, or to give them up, and adapters of packs."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

from governance.tables import tenant_key, tenant_model
from governance.tenancy_sql import ALL, run, tenant_table


class Migration(migrations.Migration):
    dependencies = [("vault", "0017_vector_index")]

    operations = [
        tenant_model(
            "FormProposal",
            {
                "constraints": [models.UniqueConstraint(fields=["tenant", "basis"], name="form_is_proposed_once")],
                "indexes": [models.Index(fields=["tenant", "status", "-id"], name="form_proposal_newest_first")],
            },
            kind=models.CharField(
                max_length=12, choices=[(kind, kind) for kind in ("plaintext", "activation", "parameter")]
            ),
            persona=tenant_key("governance.persona", null=True),
            memories=ArrayField(models.UUIDField()),
            form_id=models.UUIDField(null=True),
            basis=models.BinaryField(max_length=32),
            figures=models.JSONField(default=dict),
            status=models.CharField(
                max_length=10, choices=[(status, status) for status in ("open", "accepted", "declined")]
            ),
            job_id=models.UUIDField(null=True),
            decided_by=models.UUIDField(null=True),
            decided_at=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            "memoryform", "pack", models.CharField(max_length=130, blank=True, default="", db_default="")
        ),
        migrations.AddField(
            "memoryform", "pack_digest", models.CharField(max_length=64, blank=True, default="", db_default="")
        ),
        run(tenant_table("vault_formproposal", ALL, {}, {"persona_id": "governance_persona"})),
    ]
