"""The largest number of memories in a namespace."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("vault", "0024_by_subject"),
    ]

    operations = [
        migrations.AddField(
            model_name="namespace",
            name="quota",
            field=models.PositiveIntegerField(null=True),
        ),
    ]
