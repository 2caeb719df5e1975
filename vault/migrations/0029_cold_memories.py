"""Cold memories, and counts of what each storage tier holds."""

from django.db import migrations, models

import vault.vocabulary

COUNTED = [(one, one) for one in vault.vocabulary.Counted]


class Migration(migrations.Migration):
    dependencies = [
        ("vault", "0028_layers"),
    ]

    operations = [
        migrations.AddField("cube", "is_cold", models.BooleanField(default=False, db_default=False)),
        migrations.AlterField("dailycount", "name", models.CharField(choices=COUNTED, max_length=16)),
    ]
