"""Models of sign-in. Sessions and resets belong to a person, independent of tenants; the others belong to a tenant."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from governance.ids import uuid7
from governance.models.base import TenantModel
from governance.models.tenant import Member
from governance.models.user import User
from governance.vocabulary import RoleName


class BrowserSession(models.Model):
    """A browser in which a person is signed in. Its data are sealed; ending the row signs the browser out."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    address = models.CharField(max_length=64)
    agent = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    last_used_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)


class PasswordReset(models.Model):
    """A one-time link for a new password, mailed to a person; only the keyed hash of its token is stored."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    token_hash = models.BinaryField(max_length=32, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class Invitation(TenantModel):
    """An invitation of an address. It has two one-time links: the inviter's, and a mailed one, which proves the
    address.
    """

    email = models.EmailField()
    role = models.CharField(max_length=20, choices=[(name, name) for name in RoleName])
    inviter_id = models.UUIDField(null=True)
    token_hash = models.BinaryField(max_length=32, unique=True)
    mailed_token_hash = models.BinaryField(max_length=32, unique=True, null=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)


class OidcProvider(TenantModel):
    """The tenant's own sign-in server. It signs people in to this tenant only, whatever address it confirms."""

    issuer = models.CharField(max_length=500)
    client_id = models.CharField(max_length=200)
    sealed_secret = models.BinaryField()
    domains = ArrayField(models.CharField(max_length=253))
    default_role = models.CharField(max_length=20, blank=True, choices=[(name, name) for name in RoleName])
    opens_owners = models.BooleanField()  # an owner set it up: only then may it speak for owners

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="tenant_has_one_oidc_provider")]


class OidcIdentity(TenantModel):
    """The id of a member at the tenant's sign-in server."""

    provider = models.ForeignKey(
        OidcProvider, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    member = models.ForeignKey(
        Member, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    subject = models.CharField(max_length=255)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "provider", "subject"], name="oidc_subject_is_one_member")
        ]
