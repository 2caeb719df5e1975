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
from vault.vocabulary import NamespaceKind

OBJECT_TYPE = "namespace"
NOTHING = Q(pk__isnull=True)  # of an empty list Django would give up composing a query
# A search finds what lies in these where it names them, or where they are mounted.
NAMED_OR_MOUNTED = (NamespaceKind.EXPERT, NamespaceKind.CONTEXT_POOL, NamespaceKind.PIPELINE_CACHE)
CHATS = Q(kind=NamespaceKind.PRIVATE, path__regex=r"^/users/[^/]+/chat$")


class NamespaceQuerySet(models.QuerySet["Namespace"]):
    def visible_to(self, actor: Actor) -> "NamespaceQuerySet":
        """Namespaces of the actor's tenant that it may read: by its role and as owner, by grants, and not denied."""
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
        """The namespaces of chats, as `vault.namespaces.rules.chat_path` names them."""
        return self.filter(CHATS)

    def searchable_unnamed(self, mounted: Collection[UUID]) -> "NamespaceQuerySet":
        """The namespaces that a search includes by default. mounted: ids of the namespaces mounted for this search."""
        unlisted = Q(kind__in=NAMED_OR_MOUNTED)
        return self.filter(~unlisted | Q(id__in=mounted)) if mounted else self.exclude(unlisted)

    def without_chats(self) -> "NamespaceQuerySet":
        return self.exclude(CHATS)


def _in_reach_of(actor: Actor) -> Q:
    """Return the condition of namespaces that role, ownership and grants let the actor read: its own private ones and
    all others.
    """
    reach = ~Q(kind=NamespaceKind.PRIVATE) | Q(owner_id=actor.member_id) if reads_content(actor) else NOTHING
    if principal_grants(actor).has(OBJECT_TYPE, Effect.ALLOW):
        reach |= Q(pk__in=namespaces_granted(actor, Effect.ALLOW))
    return reach


def namespaces_granted(actor: Actor, effect: Effect) -> models.QuerySet[Any]:
    """The ids of the namespaces whose reading is granted, or denied, to the actor; to stand inside a query."""
    actions = allowing_actions(Action.READ) if effect is Effect.ALLOW else denying_actions(Action.READ)
    return grants_of(actor, OBJECT_TYPE, effect, actions).values("content_object_id")


def bound_to(actor: Actor, path: str) -> Q:
    """Within the namespaces that the actor's key is bound to. `path`: how a path is reached in the query."""
    if actor.binding is None or not actor.binding.namespaces:
        return Q()
    inside = Q()
    for root in actor.binding.namespaces:
        inside |= Q(**{path: root}) | Q(**{f"{path}__startswith": f"{root}/"})
    return inside


class Namespace(TenantModel):
    """A part of the MemVault, with a path."""

    path = models.CharField(max_length=200)
    kind = models.CharField(max_length=20, choices=[(kind, kind) for kind in NamespaceKind])
    read_only = models.BooleanField(default=False)
    quota = models.PositiveIntegerField(null=True)  # memories that it may hold; null: no limit
    session_token = models.BigIntegerField(null=True)  # of a context pool: the session that it belongs to
    ended_at = models.DateTimeField(null=True)  # of a context pool whose session has ended
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
    """A right in a namespace, and on its memories, except other owners' private ones."""

    content_object = models.ForeignKey(
        Namespace, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    class Meta(ObjectGrant.Meta):
        pass
