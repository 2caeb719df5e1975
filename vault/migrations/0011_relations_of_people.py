"""Links that a person made, which the job that computes links keeps."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0010_passage_vectors")]

    operations = [
        migrations.AddField("cubelink", "is_by_person", models.BooleanField(default=False, db_default=False)),
    ]
