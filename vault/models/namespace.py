from typing import ClassVar

from django.db import models

from governance.actor import Actor
from governance.authz.rules import sees_private
from governance.models.base import TenantModel
from governance.models.tenant import Member
from governance.policies.purposes import namespaces_denied_by_purpose
from vault.vocabulary import NamespaceKind


class NamespaceQuerySet(models.QuerySet["Namespace"]):
    def visible_to(self, actor: Actor) -> "NamespaceQuerySet":
        """Namespaces of the actor's tenant that it may read: its own private ones, and all that are not private."""
        denied = namespaces_denied_by_purpose(actor)
        rows = self.filter(tenant_id=actor.tenant_id)
        rows = rows.exclude(denied) if denied is not None else rows
        if sees_private(actor):
            return rows
        return rows.exclude(models.Q(kind=NamespaceKind.PRIVATE) & ~models.Q(owner_id=actor.member_id))

    def without_chats(self) -> "NamespaceQuerySet":
        """Without those that `vault.namespaces.rules.chat_path` names."""
        return self.exclude(kind=NamespaceKind.PRIVATE, path__regex=r"^/users/[^/]+/chat$")


class Namespace(TenantModel):
    """A part of the MemVault, with a path."""

    path = models.CharField(max_length=200)
    kind = models.CharField(max_length=20, choices=[(kind, kind) for kind in NamespaceKind])
    read_only = models.BooleanField(default=False)
    owner = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    objects: ClassVar[NamespaceQuerySet] = NamespaceQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "path"], name="namespace_path_is_unique"),
            models.CheckConstraint(
                condition=~models.Q(kind=NamespaceKind.PRIVATE) | models.Q(owner__isnull=False),
                name="private_namespace_has_an_owner",
            ),
        ]

    def __str__(self) -> str:
        return self.path
