"""The notes of the key store: the first is its id, each other a rotation of its keys."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0017_erased_subjects"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="keystorenote",
            name="database_has_one_key_store",
        ),
        migrations.AddConstraint(
            model_name="keystorenote",
            constraint=models.CheckConstraint(condition=models.Q(("id__gte", 1)), name="key_store_is_note_one"),
        ),
    ]
