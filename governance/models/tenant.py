from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from governance.ids import uuid7
from governance.models.base import TenantModel
from governance.vocabulary import RoleName


class Tenant(models.Model):
    """One organisation, isolated from all others except by a MemStore contract."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=200)
    policy_epoch = models.PositiveBigIntegerField(default=0, db_default=0)  # how often its policies were changed
    second_factor_required = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # Deletion of the tenant: the last requested job, the time it may begin, when it began, and its end.
    deletion_job = models.UUIDField(null=True, editable=False)
    deletion_at = models.DateTimeField(null=True, editable=False)
    erasing_since = models.DateTimeField(null=True, editable=False)
    erased_at = models.DateTimeField(null=True, editable=False)
    receipt = models.JSONField(null=True, editable=False)  # signed; ids, counts and times

    def __str__(self) -> str:
        return self.slug


class Role(TenantModel):
    """A role of the tenant. Its rights: governance/access/decisions/rules.py."""

    name = models.CharField(max_length=20, choices=[(name, name) for name in RoleName])

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="role_name_is_unique_in_tenant")]


class Member(TenantModel):
    """A user in a tenant, with a role."""

    user = models.ForeignKey("governance.User", on_delete=models.PROTECT, related_name="+")
    role = models.ForeignKey(Role, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    display_name = models.CharField(max_length=200)
    removed_at = models.DateTimeField(null=True, blank=True)
    timezone = models.CharField(max_length=64, default="UTC", db_default="UTC")  # in which their pages tell times
    proved_at = models.DateTimeField(null=True, blank=True)  # when the person first came by themselves
    wants_digest = models.BooleanField(default=True, db_default=True)  # of what waits for them, by mail
    digest_at = models.DateTimeField(null=True, blank=True)  # when the last one was due
    digest_counts = models.JSONField(default=dict, db_default={})  # what waited then, by kind
    hides_setup = models.BooleanField(default=False, db_default=False)  # put the checklist of the overview away

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="user_is_member_once")]

    def __str__(self) -> str:
        return self.display_name


class ApiKey(TenantModel):
    """An API key, stored as a keyed hash; the random prefix finds the row. Its text is shown once, after creation or
    rotation.

    After a rotation the former secret works until `previous_until`.
    """

    member = models.ForeignKey(
        Member, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, unique=True)
    secret_hash = models.BinaryField(max_length=32, unique=True)
    previous_hash = models.BinaryField(max_length=32, null=True, unique=True)
    previous_until = models.DateTimeField(null=True, blank=True)
    scopes = ArrayField(models.CharField(max_length=40))
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    rotated_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)  # up to 5 minutes behind: see tenants/last_use.py
    # The bindings of the key: it reads and writes only there. Without persona and namespaces it is not bound.
    persona = models.ForeignKey(
        "governance.Persona",
        null=True,
        on_delete=models.DO_NOTHING,
        db_index=False,
        db_constraint=False,
        related_name="+",
    )
    namespaces = ArrayField(models.CharField(max_length=200), default=list)
    purpose = models.CharField(max_length=200, blank=True, default="")  # of a call that names none

    def __str__(self) -> str:
        return self.prefix


class SignInLink(TenantModel):
    """A one-time link, made by a member of the tenant or an operator; only the keyed hash of its token is stored."""

    member = models.ForeignKey(
        Member, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    token_hash = models.BinaryField(max_length=32, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    by_operator = models.BooleanField(default=False, db_default=False)
