"""An index of memories by their expiry, also of those that the search index has left: lists count the expired ones."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0018_form_proposals")]

    operations = [
        migrations.AddIndex(
            "cube",
            models.Index(
                condition=models.Q(expires_at__isnull=False), fields=["tenant", "expires_at"], name="cube_by_expiry"
            ),
        ),
    ]
