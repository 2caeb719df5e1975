from collections.abc import Collection
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q

from governance.access.decisions.principal_grants import grants_of, principal_grants
from governance.access.decisions.rules import allowing_actions, denying_actions, reads_content, sees_private
from governance.actor import Actor
from governance.models.base import TenantModel
from governance.models.grant import OBJECT_PERMISSIONS, ObjectGrant
from governance.models.tenant import Member
from governance.policies.purposes import namespaces_denied_by_purpose
from governance.vocabulary import Action, Effect
from vault.vocabulary import DELETED_MARK, NamespaceKind

OBJECT_TYPE = "namespace"
NOTHING = Q(pk__isnull=True)  # matches no row; `pk__in=[]` would make Django skip the query
# Kinds of namespaces that a search includes only if they are named or mounted.
NAMED_OR_MOUNTED = (NamespaceKind.EXPERT, NamespaceKind.CONTEXT_POOL, NamespaceKind.PIPELINE_CACHE)
CHATS = Q(kind=NamespaceKind.PRIVATE, path__regex=r"^/users/[^/]+/chat$")


class NamespaceQuerySet(models.QuerySet["Namespace"]):
    def visible_to(self, actor: Actor) -> "NamespaceQuerySet":
        """Return the namespaces of the actor's tenant that its role, ownership or grants let it read and no denial
        excludes."""
        denied = namespaces_denied_by_purpose(actor)
        rows = self.filter(tenant_id=actor.tenant_id)
        rows = rows.exclude(denied) if denied is not None else rows
        if actor.is_system:
            return rows
        if not sees_private(actor):
            rows = rows.filter(_in_reach_of(actor))
        rows = rows.filter(bound_to(actor, "path"))
        if principal_grants(actor).has(OBJECT_TYPE, Effect.DENY):
            rows = rows.exclude(pk__in=namespaces_granted(actor, Effect.DENY))
        return rows

    def chats(self) -> "NamespaceQuerySet":
        """Return the namespaces of chats, which `vault.namespaces.rules.chat_path` names."""
        return self.filter(CHATS)

    def without_deleted(self) -> "NamespaceQuerySet":
        """Leave out deleted namespaces, to which former versions of memories still refer."""
        return self.exclude(path__contains=DELETED_MARK, ended_at__isnull=False)

    def searchable_unnamed(self, mounted: Collection[UUID]) -> "NamespaceQuerySet":
        """Return the namespaces that a search includes by default. mounted: ids of the namespaces mounted for this
        search."""
        unlisted = Q(kind__in=NAMED_OR_MOUNTED)
        return self.filter(~unlisted | Q(id__in=mounted)) if mounted else self.exclude(unlisted)

    def without_chats(self, named: Collection[UUID] = ()) -> "NamespaceQuerySet":
        """Return the namespaces that are no chats. named: ids of chats that stay."""
        return self.exclude(CHATS & ~Q(id__in=named)) if named else self.exclude(CHATS)


def _in_reach_of(actor: Actor) -> Q:
    """Return the condition of namespaces that role, ownership and grants let the actor read."""
    reach = ~Q(kind=NamespaceKind.PRIVATE) | Q(owner_id=actor.member_id) if reads_content(actor) else NOTHING
    if principal_grants(actor).has(OBJECT_TYPE, Effect.ALLOW):
        reach |= Q(pk__in=namespaces_granted(actor, Effect.ALLOW))
    return reach


def namespaces_granted(actor: Actor, effect: Effect) -> models.QuerySet[Any]:
    """Return the ids of namespaces that grants allow, or deny, the actor to read, as a subquery."""
    actions = allowing_actions(Action.READ) if effect is Effect.ALLOW else denying_actions(Action.READ)
    return grants_of(actor, OBJECT_TYPE, effect, actions).values("content_object_id")


def bound_to(actor: Actor, path: str) -> Q:
    """Return the condition of paths that the actor's key is bound to. path: the lookup of the path in the query."""
    if actor.binding is None or not actor.binding.namespaces:
        return Q()
    inside = Q()
    for root in actor.binding.namespaces:
        inside |= Q(**{path: root}) | Q(**{f"{path}__startswith": f"{root}/"})
    return inside


class Namespace(TenantModel):
    """A namespace of memories in the MemVault, with a path."""

    path = models.CharField(max_length=200)
    kind = models.CharField(max_length=20, choices=[(kind, kind) for kind in NamespaceKind])
    read_only = models.BooleanField(default=False)
    quota = models.PositiveIntegerField(null=True)  # memories that it may hold; null: no limit
    session_token = models.BigIntegerField(null=True)  # of a context pool: the session that it belongs to
    ended_at = models.DateTimeField(null=True)  # of a context pool whose session has ended, and of what was deleted
    is_mounted = models.BooleanField(default=False, db_default=False)  # there may be rows of Mount
    owner = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    objects: ClassVar[NamespaceQuerySet] = NamespaceQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        permissions = OBJECT_PERMISSIONS
        constraints = [
            models.UniqueConstraint(fields=["tenant", "path"], name="namespace_path_is_unique"),
            models.CheckConstraint(
                condition=~models.Q(kind=NamespaceKind.PRIVATE) | models.Q(owner__isnull=False),
                name="private_namespace_has_an_owner",
            ),
        ]

    def __str__(self) -> str:
        return self.path


class NamespaceGrant(ObjectGrant):
    """A grant of a right in a namespace and on its memories, except other owners' private ones."""

    content_object = models.ForeignKey(
        Namespace, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    class Meta(ObjectGrant.Meta):
        pass
