"""Django's permission API: our rules answer `user.has_perm("vault.view_cube", cube)` in the tenant of the object."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.backends import BaseBackend

from governance.access.decisions.grantables import Grantable, grantables
from governance.access.decisions.services import is_allowed
from governance.actor import Actor, CallContext
from governance.database import tenant_transaction
from governance.errors import NotFound
from governance.models import Member
from governance.vocabulary import Action, Channel, PrincipalKind, RoleName

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser
    from django.contrib.auth.models import AnonymousUser

ACTIONS = {
    "view": Action.READ,
    "add": Action.WRITE,
    "change": Action.WRITE,
    "delete": Action.WRITE,
    "share": Action.SHARE,
    "govern": Action.GOVERN,
}


class EngineBackend(BaseBackend):
    """Signs nobody in, and grants no permission without an object, since roles belong to a tenant, not to a person."""

    def has_perm(self, user_obj: "AbstractBaseUser | AnonymousUser", perm: str, obj: Any = None) -> bool:
        """Return whether the user has the permission. perm: as in `vault.view_cube`; False if `obj` is
        not an object of grants.
        """
        action = ACTIONS.get(perm.partition(".")[2].partition("_")[0])
        kind = _kind_of(perm, obj)
        if action is None or kind is None or not user_obj.is_active:
            return False
        with tenant_transaction(obj.tenant_id):
            actor = _actor(UUID(str(user_obj.pk)), obj.tenant_id)
            return actor is not None and _answer(actor, kind, action, obj.pk)


def _kind_of(perm: str, obj: Any) -> Grantable | None:
    """Return the kind of object that both the permission and `obj` belong to, or None."""
    if obj is None:
        return None
    for kind in grantables():
        model = kind.grants._meta.get_field("content_object").related_model
        label, name = model._meta.app_label, model._meta.model_name
        if isinstance(obj, model) and perm.partition(".")[0] == label and perm.endswith(f"_{name}"):
            return kind
    return None


def _actor(user_id: UUID, tenant_id: UUID) -> Actor | None:
    """Return the person's membership in the tenant, or None."""
    rows = Member.objects.filter(tenant_id=tenant_id, user_id=user_id, removed_at=None, user__is_active=True)
    member = rows.select_related("role").first()
    if member is None:
        return None
    return Actor(
        tenant_id=tenant_id,
        principal_kind=PrincipalKind.MEMBER,
        principal_id=member.id,
        member_id=member.id,
        role=RoleName(member.role.name),
        scopes=None,
        request_id="has_perm",
        context=CallContext(channel=Channel.WEB),
    )


def _answer(actor: Actor, kind: Grantable, action: Action, object_id: UUID) -> bool:
    try:
        return is_allowed(actor, kind.permissions[action], kind.locate(actor, object_id))
    except NotFound:
        return False
