"""Rights of a role in the reader's language, and its first page."""

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.rules import ACTIONS, ROLE_PERMISSIONS
from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.vocabulary import Permission, RoleName
from governance.web.navigation import address_of

ROLES: dict[RoleName, Promise] = {
    RoleName.OWNER: _("owner"),
    RoleName.ADMIN: _("admin"),
    RoleName.EDITOR: _("editor"),
    RoleName.VIEWER: _("viewer"),
    RoleName.AUDITOR: _("auditor"),
}
RIGHTS: dict[Permission, Promise] = {
    Permission.MEMORY_READ: _("read memories"),
    Permission.MEMORY_CREATE: _("store memories"),
    Permission.MEMORY_UPDATE: _("change memories"),
    Permission.MEMORY_DELETE: _("delete memories"),
    Permission.NAMESPACE_CREATE: _("make namespaces"),
    Permission.CONVERSATION_USE: _("chat"),
    Permission.JOB_READ: _("see jobs"),
    Permission.AUDIT_READ: _("read the audit log"),
    Permission.MEMBER_MANAGE: _("manage members"),
    Permission.APIKEY_MANAGE: _("manage API keys"),
    Permission.OPERATIONS_MANAGE: _("operate the installation"),
    Permission.MEMORY_FREEZE: _("freeze memories"),
    Permission.HOLD_MANAGE: _("make and release legal holds"),
    Permission.SUBJECT_MANAGE: _("export and erase all about a person"),
    Permission.POLICY_READ: _("read policies"),
    Permission.POLICY_MANAGE: _("set policies"),
    Permission.ACCESS_SHARE: _("share memories"),
    Permission.ACCESS_GOVERN: _("say who may share"),
    Permission.GRANT_MANAGE: _("manage all grants"),
    Permission.PERSONA_USE: _("speak as personas"),
    Permission.PERSONA_CREATE: _("make personas"),
    Permission.PERSONA_UPDATE: _("change personas"),
    Permission.TEMPLATE_MANAGE: _("manage presets"),
    Permission.STORE_MANAGE: _("publish packs and subscribe to them"),
}


def first_page(actor: Actor) -> str:
    """Return the address of the actor's first page."""
    if is_allowed(actor, Permission.MEMORY_READ):
        return address_of("overview") or reverse("memories")
    if is_allowed(actor, Permission.CONVERSATION_USE):
        return reverse("chat")
    return reverse("audit_log" if is_allowed(actor, Permission.AUDIT_READ) else "you")


def role_label(role: RoleName | None) -> str | Promise:
    return ROLES[role] if role else ""


def rights_of(role: RoleName | None) -> list[Promise]:
    """Return the rights of all members with the role."""
    return [words for permission, words in RIGHTS.items() if role and permission in ROLE_PERMISSIONS[role]]


def rights_by_grants(actor: Actor) -> list[Promise]:
    """Return the rights that grants on single objects add to the member's role, by asking the rules of access."""
    own = ROLE_PERMISSIONS[actor.role] if actor.role else frozenset()
    return [
        words
        for action, words in RIGHTS.items()
        if action in ACTIONS and action not in own and is_allowed(actor, action)
    ]
