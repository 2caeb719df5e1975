from typing import ClassVar

from django.contrib.auth import get_backends
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower, Now

from governance.ids import uuid7


class UserManager(BaseUserManager["User"]):
    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email__iexact=username)


class User(AbstractBaseUser):
    """A person who signs in by e-mail address. Rights come from memberships alone."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField()
    is_active = models.BooleanField(default=True)
    # The only tenant that the password opens, if an admin of it could have set the password; null: its owner proved the
    # address, and it opens all their tenants. See docs/decisions on accounts.
    password_tenant = models.UUIDField(null=True, editable=False)
    is_operator = models.BooleanField(default=False, db_default=False)  # sees the pages of operators
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    last_login = None  # sign-ins are audit rows

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_is_unique")]

    def __str__(self) -> str:
        return self.email

    def has_perm(self, perm: str, obj: models.Model | None = None) -> bool:
        """Answer Django's `has_perm`: governance.tenants.permission_backend decides by our own rules."""
        return any(backend.has_perm(self, perm, obj) for backend in get_backends())
