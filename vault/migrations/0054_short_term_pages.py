"""An index of the pages in short-term queues alone, which stay few however long their streams become."""

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
    ]
