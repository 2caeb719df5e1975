from django.contrib.postgres.fields import ArrayField
from django.db import models

from governance.models.base import TenantModel
from governance.vocabulary import RoleName


class RoleTemplate(TenantModel):
    """Settings that the tenant's admins apply to members, personas and keys. Empty parts change nothing."""

    name = models.CharField(max_length=100)
    role = models.CharField(max_length=20, blank=True, choices=[(name, name) for name in RoleName])
    namespaces = ArrayField(models.CharField(max_length=200), default=list)
    purpose = models.CharField(max_length=200, blank=True, default="")
    scopes = ArrayField(models.CharField(max_length=40), default=list)
    persona_attributes = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="role_template_name_is_unique")]

    def __str__(self) -> str:
        return self.name
