"""Indexes of the pages in short-term queues and of the turns with goals alone: few, however long a conversation is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0053_ratings")]

    operations = [
        migrations.RemoveIndex("page", "page_by_layer"),
        migrations.AddIndex(
            "page",
            models.Index(
                fields=["tenant", "stream", "position"], name="page_queued", condition=models.Q(layer="short_term")
            ),
        ),
        migrations.AddIndex(
            "turn",
            models.Index(
                fields=["tenant", "conversation"], name="turn_with_goal", condition=models.Q(goal_id__isnull=False)
            ),
        ),
    ]
