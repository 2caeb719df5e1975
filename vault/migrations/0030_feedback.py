"""Feedback of readers, as reviews."""

from django.db import migrations, models

from vault.vocabulary import FeedbackKind, ReviewKind

ONCE = "version_is_reviewed_once_for_each_kind"


class Migration(migrations.Migration):
    dependencies = [("vault", "0029_cold_memories")]

    operations = [
        migrations.AlterField(
            "review", "kind", models.CharField(choices=[(kind, kind) for kind in ReviewKind], max_length=20)
        ),
        migrations.AddField(
            "review",
            "feedback",
            models.CharField(
                blank=True, choices=[(kind, kind) for kind in FeedbackKind], db_default="", default="", max_length=10
            ),
        ),
        migrations.AddField(
            "review", "asked_kind", models.CharField(blank=True, db_default="", default="", max_length=10)
        ),
        migrations.AddField("review", "asked_by", models.UUIDField(null=True)),
        migrations.AddField("review", "sealed", models.BinaryField(db_default=b"", default=bytes)),
        migrations.RemoveConstraint("review", ONCE),
        migrations.AddConstraint(
            "review",
            models.UniqueConstraint(
                fields=["tenant", "version", "kind"], name=ONCE, condition=~models.Q(kind=ReviewKind.FEEDBACK)
            ),
        ),
    ]
