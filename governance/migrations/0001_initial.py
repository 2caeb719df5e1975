"""Persons. The tables of other packages refer to them; all other tables follow in 0002, once those are there."""

from django.db import migrations, models
from django.db.models.functions import Lower

from governance.tables import CREATED_AT, table, uuid_key


class Migration(migrations.Migration):
    initial = True

    operations = [
        table(
            "User",
            {"constraints": [models.UniqueConstraint(Lower("email"), name="user_email_is_unique")]},
            password=models.CharField(max_length=128, verbose_name="password"),
            id=uuid_key(),
            email=models.EmailField(max_length=254),
            is_active=models.BooleanField(default=True),
            password_tenant=models.UUIDField(null=True, editable=False),
            is_operator=models.BooleanField(default=False, db_default=False),
            created_at=CREATED_AT,
        )
    ]
