"""Members who put the checklist of the overview away."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("governance", "0005_key_requests")]

    operations = [
        migrations.AddField("member", "hides_setup", models.BooleanField(default=False, db_default=False)),
    ]
