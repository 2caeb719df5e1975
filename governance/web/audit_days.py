"""Audit entries by days of the reader, with the reader's own reads folded; active filters; time ranges to choose."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from itertools import groupby
from uuid import UUID

from django.http import QueryDict
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from governance.actor import Actor
from governance.audit.reading.queries import FILTERS
from governance.vocabulary import Outcome
from governance.web.audit_facts import Fact
from governance.web.audit_lines import Line, facts_of
from governance.web.audit_words import Sentence, sentence_of
from governance.web.verb_words import OUTCOMES, verb_words

LABELS: dict[str, Promise] = {
    "verb": _("Action"),
    "outcome": _("Outcome"),
    "principal": _("Principal"),
    "object": _("Object"),
    "request_id": _("Request"),
    "from": _("From"),
    "to": _("Before"),
}
FEWEST = 2  # entries that are worth a fold


class Fold(StrEnum):
    OWN = "own"
    EMPTY = "empty"


@dataclass(frozen=True)
class EntryRow:
    """An entry and its sentence."""

    line: Line
    sentence: Sentence


@dataclass(frozen=True)
class EntryGroup:
    """Consecutive entries. fold: the reader's own reads, or reads that found nothing, both shown on demand; or None."""

    rows: tuple[EntryRow, ...]
    fold: Fold | None


@dataclass(frozen=True)
class Day:
    date: date
    groups: tuple[EntryGroup, ...]


@dataclass(frozen=True)
class Chip:
    """An active filter. without: the query string that removes it."""

    label: str | Promise
    value: str
    without: str


@dataclass(frozen=True)
class Period:
    """A range of days of the reader. `since` is included, `before` is not."""

    label: Promise
    since: date
    before: date | None = None


def days_of(lines: Sequence[Line], *, reader: UUID) -> list[Day]:
    """Return the lines, in order, by days of the reader's time zone."""
    by_day = groupby(lines, key=lambda line: timezone.localtime(line.entry.at).date())
    return [
        Day(day, tuple(_groups([EntryRow(line, sentence_of(line)) for line in found], reader))) for day, found in by_day
    ]


def _groups(rows: Sequence[EntryRow], reader: UUID) -> Iterator[EntryGroup]:
    for fold, found in groupby(rows, key=lambda row: _fold_of(row, reader)):
        group = tuple(found)
        yield EntryGroup(group, fold if len(group) >= FEWEST else None)


def _fold_of(row: EntryRow, reader: UUID) -> Fold | None:
    if not row.sentence.is_reading or row.sentence.is_denied:
        return None
    if row.line.entry.principal_id == reader:
        return Fold.OWN
    return Fold.EMPTY if row.sentence.what and not row.line.entry.object_ids else None


def chips_of(actor: Actor, asked: QueryDict) -> list[Chip]:
    """Return the active filters of an address."""
    given = {name: asked.get(name, "").strip() for name in (*FILTERS, "kind")}
    given = {name: value for name, value in given.items() if value}
    [facts] = filters_in_words(actor, [given])
    return [
        Chip(
            LABELS[fact.name],
            fact.shown or fact.text,
            urlencode({other: text for other, text in given.items() if other != fact.name}),
        )
        for fact in facts
        if fact.name in LABELS
    ]


def filters_in_words(actor: Actor, rows: Sequence[Mapping[str, object]]) -> list[list[Fact]]:
    """Return the filters of each row as facts: ids as names, verbs and outcomes in words."""
    return [[_fact_in_words(fact) for fact in facts] for facts in facts_of(actor, rows)]


def _fact_in_words(fact: Fact) -> Fact:
    if fact.name == "verb":
        return replace(fact, shown=verb_words(fact.text))
    if fact.name == "outcome" and fact.text in OUTCOMES:
        return replace(fact, shown=str(OUTCOMES[Outcome(fact.text)]))
    return fact


def period_choices(today: date) -> list[Period]:
    month = today.replace(day=1)
    return [
        Period(_("Today"), today),
        Period(_("Yesterday"), today - timedelta(days=1), today),
        Period(_("7 days"), today - timedelta(days=6)),
        Period(_("30 days"), today - timedelta(days=29)),
        Period(_("Last month"), (month - timedelta(days=1)).replace(day=1), month),
    ]


def times_to_utc(asked: Mapping[str, str]) -> dict[str, str]:
    """Convert a form's times from the reader's time zone to UTC; a text that is no time stays."""
    return {name: _time_to_utc(value) if name in {"from", "to"} else value for name, value in asked.items()}


def _time_to_utc(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text.strip().replace(" ", "+"))
    except ValueError:
        return text  # the query says what is wrong with it
    if moment.tzinfo is not None:
        return text
    return moment.replace(tzinfo=timezone.get_current_timezone()).isoformat()
