"""The pages of the side bar. Each is shown only if it exists and the reader's role may use it."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.vocabulary import Permission


@dataclass(frozen=True)
class Page:
    """A page of the product. name: of its URL pattern; key: its keyboard shortcut after `g`; needs: any of these
    permissions.
    """

    name: str
    label: Promise
    icon: str
    needs: tuple[Permission, ...]
    key: str = ""


@dataclass(frozen=True)
class Group:
    label: Promise | str
    pages: tuple[Page, ...]


@dataclass(frozen=True)
class Link:
    """A page for one reader."""

    label: str
    address: str
    icon: str
    key: str
    is_current: bool


@dataclass(frozen=True)
class LinkGroup:
    label: str
    links: tuple[Link, ...]


GROUPS = (
    Group(
        _("Memory"),
        (
            Page("overview", _("Overview"), "layout-dashboard", (Permission.MEMORY_READ,), "o"),
            Page("memories", _("Memories"), "cards", (Permission.MEMORY_READ,), "m"),
            Page("layers", _("Layers"), "stack-2", (Permission.MEMORY_READ,), "l"),
            Page("graph", _("Graph & timeline"), "affiliate", (Permission.MEMORY_READ,), "t"),
            Page("reviews", _("Review"), "inbox", (Permission.MEMORY_UPDATE,), "r"),
        ),
    ),
    Group(
        "",
        (
            Page("chat", _("Chat"), "message-circle", (Permission.CONVERSATION_USE,), "c"),
            Page("store", _("MemStore"), "building-store", (Permission.MEMORY_READ,), "s"),
        ),
    ),
    Group(
        _("Governance"),
        (
            Page("access_list", _("Access"), "lock-access", (Permission.ACCESS_SHARE,), "a"),
            Page("personas", _("Personas"), "users", (Permission.PERSONA_USE,), "p"),
            Page("namespaces", _("Namespaces"), "folder", (Permission.MEMORY_READ,)),
            Page("policies", _("Policies"), "file-certificate", (Permission.POLICY_READ,)),
            Page("quotas", _("Quotas"), "database", (Permission.POLICY_READ,)),
            Page("subjects", _("Data subjects"), "id", (Permission.SUBJECT_MANAGE,)),
            Page("holds", _("Holds"), "snowflake", (Permission.HOLD_MANAGE,), "h"),
            Page("audit_log", _("Audit"), "shield-check", (Permission.AUDIT_READ,), "u"),
        ),
    ),
    Group(
        _("Operate"),
        (
            Page("jobs", _("Jobs"), "clock-play", (Permission.JOB_READ,), "j"),
            Page("pipelines", _("Pipelines"), "git-merge", (Permission.MEMORY_READ,)),
            Page("forms", _("Forms"), "cpu", (Permission.MEMORY_READ,)),
            Page("schedules", _("Schedules"), "calendar-event", (Permission.OPERATIONS_MANAGE,), "n"),
            Page("exchange", _("Import and export"), "upload", (Permission.MEMORY_READ,)),
            Page("integrations", _("Integrations"), "plug-connected", (Permission.OPERATIONS_MANAGE,), "i"),
        ),
    ),
)
SETTINGS = (
    Page("members", _("Settings"), "settings", (Permission.MEMBER_MANAGE,)),
    Page("keys", _("API keys"), "key", (Permission.APIKEY_MANAGE,)),
)
ON_A_PHONE = ("overview", "memories", "reviews", "chat")


def navigation_of(actor: Actor, path: str) -> list[LinkGroup]:
    """Return the groups with a page for `actor`; the page at `path` is marked as current."""
    found = ((group.label, tuple(_links(group.pages, actor, path))) for group in GROUPS)
    return [LinkGroup(str(label), links) for label, links in found if links]


def settings_of(actor: Actor, path: str) -> list[Link]:
    return list(_links(SETTINGS, actor, path))


def bottom_bar_of(actor: Actor, path: str) -> list[Link]:
    """Return the few pages of the bottom bar on phones."""
    pages = [page for group in GROUPS for page in group.pages if page.name in ON_A_PHONE]
    return list(_links(pages, actor, path))


def _links(pages: tuple[Page, ...] | list[Page], actor: Actor, path: str) -> Iterator[Link]:
    for page in pages:
        address = address_of(page.name)
        if address and any(is_allowed(actor, permission) for permission in page.needs):
            yield Link(str(page.label), address, page.icon, page.key, path.startswith(address))


def address_of(name: str) -> str:
    """Return the address of the page; empty if it does not exist yet."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""
