"""Words for grants in the reader's language: grantee, action and conditions."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.functional import Promise
from django.utils.text import get_text_list
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.conditions import rename_parts
from governance.access.grants.grantees import Grantee
from governance.vocabulary import Action, Channel, Effect, GranteeKind, RoleName
from governance.web.roles import ROLES

KINDS: dict[GranteeKind, Promise] = {
    GranteeKind.ROLE: _("role"),
    GranteeKind.MEMBER: _("member"),
    GranteeKind.PERSONA: _("persona"),
    GranteeKind.API_KEY: _("API key"),
}
OBJECTS: dict[str, Promise] = {"namespace": _("namespace"), "memory": _("memory"), "persona": _("persona")}
EFFECTS: dict[Effect, Promise] = {Effect.ALLOW: _("may"), Effect.DENY: _("may not")}
ACTIONS: dict[Action, Promise] = {
    Action.READ: _("read"),
    Action.WRITE: _("write"),
    Action.SHARE: _("share"),
    Action.GOVERN: _("govern"),
}
CHANNELS: dict[str, Promise] = {
    Channel.API: _("API"),
    Channel.WEB: _("browser"),
    Channel.CHAT: _("chat"),
    Channel.MCP: _("MCP"),
    Channel.COMMAND_LINE: _("command line"),
    Channel.WORKER: _("background work"),
}
LISTED: dict[str, Promise] = {
    "purpose": _("for %(values)s"),
    "channel": _("through %(values)s"),
    "session_id": _("in the session %(values)s"),
    "address": _("from the network %(values)s"),
}
MOMENTS: dict[str, Promise] = {
    "not_before": _("from %(moment)s on"),
    "not_after": _("before %(moment)s"),
}


def conditions_text(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each part of a condition (see governance.access.decisions.conditions)."""
    return [_part_text(name, value) for name, value in rename_parts(document).items()]


def grantee_words(grantee: Grantee) -> str:
    """Return the name of a grantee; a role's in the reader's language."""
    return str(ROLES[RoleName(grantee.name)]) if grantee.kind is GranteeKind.ROLE else grantee.name


def describe_holders(holders: Sequence[Grantee]) -> list[tuple[str, Promise, str]]:
    """Return the values, the kinds and the names of holders to choose from."""
    return [(f"{holder.kind}:{holder.id}", KINDS[holder.kind], grantee_words(holder)) for holder in holders]


def _part_text(name: str, value: Any) -> str:
    if name in LISTED and isinstance(value, list):
        words = [str(CHANNELS.get(item, item)) if name == "channel" else str(item) for item in value]
        return str(LISTED[name]) % {"values": get_text_list(words, gettext("or"))}
    if name in MOMENTS:
        return str(MOMENTS[name]) % {"moment": value}
    if name == "daily" and isinstance(value, dict):
        hours = {"start": _minutes(value.get("from")), "end": _minutes(value.get("until"))}
        return gettext("every day from %(start)s to %(end)s UTC") % hours
    return gettext("under a condition that is not known here (%(name)s)") % {"name": name}


def _minutes(text: Any) -> str:
    """Return the time without seconds: 08:00:00 as 08:00."""
    return str(text).removesuffix(":00") if str(text).count(":") == 2 else str(text)
