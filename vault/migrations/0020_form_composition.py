"""Caches that may stand behind others in a prompt, with their measured quality; caches and adapters of tasks."""

from django.db import migrations, models

from governance.tenancy_sql import run

COLUMNS = "digest, length, parents, subjects, fingerprint, persona_id, is_pinned, report, approved_at"
DROP = "DROP TRIGGER form_stays_while_held ON vault_memoryform"
TRIGGER = """
CREATE TRIGGER form_stays_while_held BEFORE DELETE OR UPDATE OF {columns}
  ON vault_memoryform FOR EACH ROW EXECUTE FUNCTION vault_form_stays_while_held()
"""


class Migration(migrations.Migration):
    dependencies = [("vault", "0019_cube_by_expiry")]

    operations = [
        migrations.AddField(
            "memoryform",
            "composition",
            models.CharField(
                max_length=24,
                choices=[
                    (choice, choice)
                    for choice in ("exact", "rotated", "rotated+recompute(12)", "rotated+recompute(32)")
                ],
                default="exact",
                db_default="exact",
            ),
        ),
        migrations.AddField("memoryform", "quality", models.JSONField(default=dict, db_default={})),
        migrations.AddField("memoryform", "task_token", models.BigIntegerField(null=True)),
        migrations.AddField("memoryform", "sealed_task", models.BinaryField(default=bytes, db_default=b"")),
        migrations.AddIndex(
            "memoryform",
            models.Index(
                fields=["tenant", "task_token"], name="form_by_task", condition=models.Q(task_token__isnull=False)
            ),
        ),
        run([DROP, TRIGGER.format(columns=f"{COLUMNS}, composition, task_token")]),
    ]
