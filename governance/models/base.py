"""Base classes of the tables of a tenant."""

from django.db import models
from django.db.models.functions import Now

from governance import lookups  # noqa: F401  registers them
from governance.ids import uuid7


class TenantModel(models.Model):
    """A row of one tenant. Migrations add row-level security and the composite keys (governance/tenancy_sql.py)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        abstract = True
