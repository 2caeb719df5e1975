"""What is wrong with a field of a form, in the reader's language: the API says the same in English."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.errors import FieldError

FIELDS: dict[str, Promise] = {
    "verb": _("Action"),
    "outcome": _("Outcome"),
    "principal": _("Principal"),
    "object": _("Object"),
    "request_id": _("Request"),
    "from": _("From (UTC)"),
    "to": _("Before (UTC)"),
    "format": _("Format"),
    "name": _("Name"),
    "kind": _("Kind"),
    "address": _("Address"),
    "secret": _("Secret of a webhook"),
    "member": _("Member"),
    "scopes": _("Scopes"),
    "expires": _("Until"),
    "expires_at": _("Until"),
    "overlap_seconds": _("Hours in which both work"),
    "persona": _("Persona"),
    "namespaces": _("Namespaces"),
    "purpose": _("Purpose"),
}
MESSAGES: dict[str, Promise] = {
    "a date or a time, as in 2027-01-31T12:00:00Z": _("Write a date or a time, as in 2027-01-31 or 2027-01-31T12:00."),
    "must not be before from": _("This is before the beginning. Swap the two."),
    "nothing has this id or name": _("Nothing here has this id or name."),
    "several have this name: give the e-mail address or the id": _(
        "Several have this name: give the e-mail address or the id."
    ),
    "must be in the future": _("Name a day that is still to come."),
    "a date such as 2027-01-31": _("Write a date, as in 2027-01-31."),
    "choose a member": _("Choose a member."),
    "choose one at least": _("Choose one at least."),
    "paths such as /team/notes": _("Write paths such as /team/notes, one a line."),
    "no persona of this key's member, and no agent, has this id or name": _(
        "Neither an assistant nor a persona of the key's member has this id or name."
    ),
    "several have this name: give the id": _("Several have this name: give the id."),
    "a path such as /team/notes": _("Write a path such as /team/notes."),
    "letters, digits, dots, hyphens and underscores alone": _("Use letters, digits, dots, hyphens and underscores."),
}


@dataclass(frozen=True)
class Fault:
    """`known`: whether the words are the reader's, and not the API's English."""

    label: str | Promise
    words: str | Promise
    known: bool


def faults_told(faults: Iterable[FieldError]) -> list[Fault]:
    return [
        Fault(FIELDS.get(one.field, one.field), MESSAGES.get(one.message, one.message), one.message in MESSAGES)
        for one in faults
    ]
