"""Reviews about two memories, each pair once."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.operations import RunSQL

import vault.vocabulary
from governance.tenancy_sql import reference

IS_PAIR = models.Q(("other__isnull", False))


class Migration(migrations.Migration):
    dependencies = [
        ("vault", "0030_feedback"),
    ]

    operations = [
        migrations.AddField(
            "review",
            "other",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="vault.cube",
            ),
        ),
        migrations.AlterField(
            "review",
            "kind",
            models.CharField(choices=[(one, one) for one in vault.vocabulary.ReviewKind], max_length=20),
        ),
        migrations.RemoveConstraint("review", "version_is_reviewed_once_for_each_kind"),
        migrations.AddConstraint(
            "review",
            models.UniqueConstraint(
                fields=("tenant", "version", "kind"),
                name="version_is_reviewed_once_for_each_kind",
                condition=models.Q(("other", None)) & ~models.Q(("kind", vault.vocabulary.ReviewKind.FEEDBACK)),
            ),
        ),
        migrations.AddConstraint(
            "review",
            models.UniqueConstraint(
                fields=("tenant", "kind", "cube", "other"),
                name="pair_is_reviewed_once_for_each_kind",
                condition=IS_PAIR,
            ),
        ),
        migrations.AddIndex(
            "review", models.Index(fields=["tenant", "other"], name="review_by_other", condition=IS_PAIR)
        ),
        RunSQL(reference("vault_review", "other_id", "vault_cube", on_delete="CASCADE"), RunSQL.noop),
    ]
