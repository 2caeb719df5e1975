"""Errors of form fields in the reader's language; the API says the same in English."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from governance.errors import FieldError

FIELDS: dict[str, Promise] = {
    "verb": _("Action"),
    "outcome": _("Outcome"),
    "principal": _("Principal"),
    "object": _("Object"),
    "request_id": _("Request"),
    "from": _("From"),
    "to": _("Before"),
    "format": _("Format"),
    "name": _("Name"),
    "kind": _("Kind"),
    "namespace": _("Namespace"),
}
MESSAGES: dict[str, Promise] = {
    "a date or a time, as in 2027-01-31T12:00:00Z": _("Write a date or a time, as in 2027-01-31 or 2027-01-31T12:00."),
    "must not be before from": _("The end is before the beginning. Swap the two."),
    "nothing has this id or name": _("Nothing here has this id or name."),
    "several have this name: give the e-mail address or the id": _(
        "Several have this name: give the e-mail address or the id."
    ),
    "a whole address, as in https://host/path": _("Write the whole address, as in https://log.example/audit."),
    "a whole address, as in syslog+tls://host:6514": _(
        "Write the whole address, as in syslog+tls://log.example:6514; syslog+tcp:// and syslog+udp:// work too."
    ),
    "without TLS nothing is sent, unless the operator allows it": _(
        "Begin it with https://. Over http:// nothing is sent, unless the operator of this installation allows it."
    ),
    "1 to 100 characters": _("Give it a name, of at most 100 characters."),
    "a whole address, as in https://host/v1": _("Write the whole address, as in https://host/v1."),
    "a number is needed": _("Write a number."),
    "a whole number is needed": _("Write a whole number."),
    "three capital letters, as in USD": _("Write three letters, as in USD."),
    "16 to 200 characters, to sign with": _("A webhook needs a secret of 16 to 200 characters: deliveries are signed."),
    "five fields: minute hour day month weekday": _("Write five fields, as in 0 3 * * 1."),
    "a name as Europe/Berlin or UTC": _("Write the name of a time zone, as in Europe/Berlin."),
    "syslog has none": _("Leave it empty: syslog has no secret."),
    "must be in the future": _("Choose a day in the future."),
    "a date such as 2027-01-31": _("Write a date, as in 2027-01-31."),
    "choose one at least": _("Choose at least one."),
    "paths such as /team/notes": _("Write paths such as /team/notes, one a line."),
    "no persona of this key's member, and no agent, has this id or name": _(
        "Neither an assistant nor a persona of the key's member has this id or name."
    ),
    "several have this name: give the id": _("Several have this name: give the id."),
    "no memories that you may read are there": _("It has no memories that you may read."),
    "is needed": _("Fill it in."),
    "reading steps come before the steps that change memories": _(
        "Move it up: steps that read come before steps that change memories."
    ),
    "a path such as /team/notes": _("Write a path such as /team/notes."),
    "1 to 200 printable characters": _("Write at most 200 visible characters."),
    "another has this name": _("Write a name in one line that no other member has."),
    "a line of 1 to 200 characters": _("Write a name in one line that no other member has."),
    "this is not your current password": _("This is not your current password."),
    "this code is wrong, or was used already": _("This code is wrong, or was used already."),
    "1 to 200 characters are needed": _("Write at most 200 visible characters."),
    "there is no such memory": _("There is no memory with this id."),
    "name one of memory_id, filters and subject": _("Fill in just one: a memory, a data subject or a query."),
    "1 to 60 printable characters": _("Give it a name, of at most 60 characters."),
    "1 to 100 printable characters": _("Give it a name, of at most 100 characters."),
    "There is a namespace at this path already.": _("There is a namespace at this path already. Choose another path."),
    "The namespace is mounted there already.": _("It is mounted there already."),
    "give one of persona, conversation and task_id": _("Choose a persona or a task."),
    "1 to 300 characters are needed": _("Say why: others read the reason."),
    "an https:// address is needed": _("Write the whole address, as in https://login.example.org."),
    "name the mail domains": _("Write domains such as example.org."),
    "letters, digits, dots, hyphens and underscores alone": _("Use letters, digits, dots, hyphens and underscores."),
}


@dataclass(frozen=True)
class Fault:
    """An error of a form field. `known`: its text is translated, and not the API's English."""

    label: str | Promise
    words: str | Promise
    known: bool


NOT_PUBLIC = " is no public address"


def fault_texts(faults: Iterable[FieldError]) -> list[Fault]:
    return [_fault_text(fault) for fault in faults]


def _fault_text(fault: FieldError) -> Fault:
    label = FIELDS.get(fault.field, fault.field)
    if fault.message.endswith(NOT_PUBLIC):
        message = gettext("%(host)s is inside a private network. Nothing is sent there, unless the operator allows it.")
        return Fault(label, message % {"host": fault.message.removesuffix(NOT_PUBLIC)}, known=True)
    return Fault(label, MESSAGES.get(fault.message, fault.message), known=fault.message in MESSAGES)
