"""Recent activity as sentences: actor, action and time. Equal consecutive ones are joined."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

from governance.vocabulary import PrincipalKind, Verb

if TYPE_CHECKING:
    from governance.audit.reading.activity import Activity

MEMORY = "memory"
WORDS = {
    Verb.MEMORY_CREATED: ngettext_lazy("added %(n)s memory", "added %(n)s memories", "n"),
    Verb.MEMORY_UPDATED: ngettext_lazy("changed %(n)s memory", "changed %(n)s memories", "n"),
    Verb.MEMORY_DELETED: ngettext_lazy("deleted %(n)s memory", "deleted %(n)s memories", "n"),
    Verb.MEMORY_RESTORED: ngettext_lazy("restored %(n)s memory", "restored %(n)s memories", "n"),
    Verb.MEMORY_PURGED: ngettext_lazy("erased %(n)s memory", "erased %(n)s memories", "n"),
    Verb.MEMORY_REDACTED: ngettext_lazy("redacted %(n)s memory", "redacted %(n)s memories", "n"),
    Verb.MEMORY_QUARANTINED: ngettext_lazy("put %(n)s memory in quarantine", "put %(n)s memories in quarantine", "n"),
    Verb.MEMORY_FROZEN: ngettext_lazy("froze %(n)s memory", "froze %(n)s memories", "n"),
    Verb.MEMORY_UNFROZEN: ngettext_lazy("unfroze %(n)s memory", "unfroze %(n)s memories", "n"),
    Verb.MEMORY_TRANSITIONED: ngettext_lazy(
        "changed the state of %(n)s memory", "changed the state of %(n)s memories", "n"
    ),
    Verb.MEMORY_PROMOTED: ngettext_lazy(
        "changed the layer of %(n)s memory", "changed the layer of %(n)s memories", "n"
    ),
    Verb.RETENTION_APPLIED: ngettext_lazy(
        "set the expiry of %(n)s memory by a policy", "set the expiry of %(n)s memories by a policy", "n"
    ),
    Verb.TURN_CREATED: ngettext_lazy("asked %(n)s question in chat", "asked %(n)s questions in chat", "n"),
    Verb.REVIEW_ACCEPTED: ngettext_lazy("accepted %(n)s review", "accepted %(n)s reviews", "n"),
    Verb.REVIEW_REJECTED: ngettext_lazy("rejected %(n)s review", "rejected %(n)s reviews", "n"),
    Verb.REVIEW_REOPENED: ngettext_lazy("reopened %(n)s review", "reopened %(n)s reviews", "n"),
    Verb.HOLD_CREATED: ngettext_lazy("placed %(n)s legal hold", "placed %(n)s legal holds", "n"),
    Verb.HOLD_RELEASED: ngettext_lazy("released %(n)s legal hold", "released %(n)s legal holds", "n"),
    Verb.GRANT_CREATED: ngettext_lazy("gave %(n)s grant", "gave %(n)s grants", "n"),
    Verb.GRANT_REVOKED: ngettext_lazy("revoked %(n)s grant", "revoked %(n)s grants", "n"),
    Verb.POLICY_CREATED: ngettext_lazy("made %(n)s policy", "made %(n)s policies", "n"),
    Verb.POLICY_CHANGED: ngettext_lazy("changed %(n)s policy", "changed %(n)s policies", "n"),
    Verb.MEMBER_ADDED: ngettext_lazy("added %(n)s member", "added %(n)s members", "n"),
    Verb.APIKEY_CREATED: ngettext_lazy("made %(n)s API key", "made %(n)s API keys", "n"),
    Verb.APIKEY_REVOKED: ngettext_lazy("revoked %(n)s API key", "revoked %(n)s API keys", "n"),
    Verb.PERSONA_CREATED: ngettext_lazy("made %(n)s persona", "made %(n)s personas", "n"),
}
PAIRS = 2  # an audit entry of a grant has two ids: object and grant


@dataclass(frozen=True)
class Line:
    """One sentence. address: of the memory or of the audit entry, or empty. side: the channel of the action."""

    at: datetime
    who: str
    is_key: bool
    is_system: bool
    verb: Verb
    count: int
    objects: tuple[UUID, ...]
    address: str
    side: str

    @property
    def words(self) -> str:
        return str(WORDS[self.verb] % {"n": self.count})


def activity_lines(found: "Sequence[Activity]", *, may_audit: bool, most: int) -> list[Line]:
    lines: list[Line] = []
    for row, name in found:
        line = _make_line(row, name, may_audit=may_audit)
        last = lines[-1] if lines else None
        if last and (last.who, last.verb, last.side) == (line.who, line.verb, line.side):
            lines[-1] = replace(last, count=last.count + line.count, address=_choose_joined_address(last, may_audit))
        else:
            lines.append(line)
    return lines[:most]


def _make_line(row, name, *, may_audit: bool) -> Line:  # type: ignore[no-untyped-def]
    is_system = row.principal_kind == PrincipalKind.SYSTEM
    objects = tuple(row.object_ids)
    count = len(objects) if row.object_type == MEMORY else 1
    address = reverse("audit_entry", args=[row.id]) if may_audit else ""
    if row.object_type == MEMORY and count == 1 and row.verb not in {Verb.MEMORY_DELETED, Verb.MEMORY_PURGED}:
        address = reverse("memory", args=[objects[0]])
    return Line(
        at=row.at,
        who=_("MemOS Web") if is_system else str(name.text if name else _("A former member")),
        is_key=row.principal_kind == PrincipalKind.API_KEY,
        is_system=is_system,
        verb=Verb(row.verb),
        count=max(count, 1),
        objects=objects,
        address=address,
        side=_name_channel(row.context.get("channel", ""), row.principal_kind),
    )


def _choose_joined_address(line: Line, may_audit: bool) -> str:
    return reverse("audit_log") if may_audit and "/memories/" in line.address else line.address if may_audit else ""


def _name_channel(channel: str, kind: str) -> str:
    if kind == PrincipalKind.API_KEY:
        return _("API key")
    return {"web": "", "worker": _("job"), "command_line": _("command line"), "chat": _("chat")}.get(channel, channel)
