"""A memory knows which policy set its expiry: that one follows the policies, what a person set stays."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("vault", "0007_holds"), ("governance", "0006_policies")]

    operations = [migrations.AddField(model_name="cube", name="expiry_policy", field=models.UUIDField(null=True))]
