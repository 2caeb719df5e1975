"""Details of audit entries in words: the name and the value of each fact, in the reader's language and time zone."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.text import get_text_list
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from governance.object_names import ID, Name, ids_in, replace_ids
from governance.web.access_words import ACTIONS, CHANNELS, EFFECTS, KINDS
from governance.web.roles import ROLES

NAMES: dict[str, Promise] = {
    "action": _("right"),
    "address": _("address"),
    "addresses": _("addresses"),
    "allowed": _("allowed"),
    "as_of": _("state of"),
    "before": _("before"),
    "budget": _("budget"),
    "by": _("by"),
    "changed": _("changed"),
    "channel": _("channel"),
    "citations": _("citations"),
    "composition": _("composition"),
    "conditions": _("conditions"),
    "counted": _("counted"),
    "covered": _("memories covered"),
    "cron": _("times"),
    "cubes": _("memories"),
    "days": _("days"),
    "effect": _("effect"),
    "enabled": _("switched on"),
    "end": _("end"),
    "event": _("event"),
    "events": _("events"),
    "expires_at": _("expires"),
    "former": _("formerly"),
    "from": _("from"),
    "grant": _("grant"),
    "hides_setup": _("hides the setup list"),
    "holder": _("holder"),
    "holder_kind": _("kind of holder"),
    "host": _("host"),
    "is_operator": _("operator"),
    "items": _("items"),
    "kept_by_holds": _("stayed under a hold"),
    "key": _("key"),
    "key_destroyed": _("key destroyed"),
    "keys_revoked": _("keys revoked"),
    "kind": _("kind"),
    "leak": _("leak"),
    "manifest": _("signed list"),
    "memories": _("memories"),
    "model": _("model"),
    "mount": _("mount"),
    "mounted_on": _("mounted on"),
    "name": _("name"),
    "namespace_ids": _("namespaces"),
    "namespaces": _("namespaces"),
    "on_task": _("on a task"),
    "overlap_seconds": _("seconds in which both work"),
    "pages": _("pages"),
    "part": _("part"),
    "path": _("path"),
    "permission": _("right"),
    "persona": _("persona"),
    "pii_found": _("personal data found"),
    "pii_redacted": _("personal data redacted"),
    "pinned": _("pinned"),
    "pipeline": _("pipeline"),
    "prefix": _("prefix"),
    "principal": _("who"),
    "purpose": _("purpose"),
    "quarantined": _("in quarantine"),
    "query": _("question"),
    "quota": _("quota"),
    "read_only": _("read only"),
    "reason": _("reason"),
    "recalled": _("recalled"),
    "receipt": _("receipt"),
    "relation": _("relation"),
    "replaced": _("replaced"),
    "report": _("report"),
    "role": _("role"),
    "rows": _("rows"),
    "rule": _("rule"),
    "rules": _("rules"),
    "scopes": _("scopes"),
    "second_factor": _("second factor"),
    "session": _("session"),
    "state": _("state"),
    "step": _("step"),
    "steps": _("steps"),
    "template": _("preset"),
    "timezone": _("time zone"),
    "to": _("to"),
    "tokens": _("tokens"),
    "tries": _("tries"),
    "verdict": _("verdict"),
    "wants_digest": _("wants a daily mail"),
    "way": _("way"),
    "writable": _("writable"),
}
VALUES: dict[str, Promise] = {
    **{str(value): words for terms in (ROLES, KINDS, EFFECTS, ACTIONS, CHANNELS) for value, words in terms.items()},
    "generated": _("generated"),
    "activated": _("activated"),
    "merged": _("merged"),
    "archived": _("archived"),
    "expired": _("expired"),
    "link": _("link"),
    "password": _("password"),
}
CODE = re.compile(r"[a-z]+(?:_[a-z]+)*")  # a value of an enumeration
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True)
class Fact:
    """A part of an entry's detail or context. label: its name in words; text: as recorded; shown: in words, empty if
    the value is only the id of something that has no name.
    """

    name: str
    label: str
    text: str
    shown: str


def facts_from(values: Mapping[str, object], names: Mapping[UUID, Name]) -> tuple[Fact, ...]:
    """Return the facts of a detail. names: those of the ids in it."""
    return tuple(
        Fact(name, fact_label(name), _text(value), _value_words(value, names)) for name, value in values.items()
    )


def ids_of(values: Mapping[str, object]) -> set[UUID]:
    """Return the ids in the texts of a detail, also within its lists and mappings."""
    return {id for text in _texts(values) for id in ids_in(text)}


def fact_label(name: str) -> str:
    """Return the words for a fact's name; of a name without words, its own parts."""
    return str(NAMES.get(name) or name.replace("_", " "))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts(part)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value_words(value: object, names: Mapping[UUID, Name]) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, str):
        return _text_words(value, names)
    if isinstance(value, Mapping):
        pairs = [(fact_label(name), _value_words(part, names)) for name, part in value.items()]
        return ", ".join(f"{label} {shown}" for label, shown in pairs if shown)
    if isinstance(value, Sequence):
        return get_text_list([shown for part in value if (shown := _value_words(part, names))], gettext("and"))
    return str(value)


def _text_words(text: str, names: Mapping[UUID, Name]) -> str:
    if CODE.fullmatch(text):
        return str(VALUES.get(text) or text.replace("_", " "))
    if TIME.fullmatch(text):
        return date_format(timezone.localtime(datetime.fromisoformat(text)), "DATETIME_FORMAT")
    shown = replace_ids(text, names)
    return "" if ID.fullmatch(shown) else shown
