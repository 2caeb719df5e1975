"""Rows of the trail as people read them: names beside ids, for which the whole page costs one query."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from governance.actor import Actor
from governance.models import AuditEntry
from governance.naming import Name
from governance.trail.selectors import names_of
from governance.web.paging import uuid_or_none

OBJECTS = 3  # of one row in a list


@dataclass(frozen=True)
class Fact:
    """A part of a row's detail or context; `about`: what its text, an id, is called."""

    name: str
    text: str
    about: Name | None = None


@dataclass(frozen=True)
class Line:
    """A row with what it names. behind: whose key acted; objects: the first of them; more: how many others."""

    entry: AuditEntry
    who: Name | None
    behind: Name | None
    objects: tuple[tuple[UUID, Name | None], ...]
    detail: tuple[Fact, ...]
    context: tuple[Fact, ...]

    @property
    def more(self) -> int:
        return len(self.entry.object_ids) - len(self.objects)


def lines_of(actor: Actor, entries: Sequence[AuditEntry], *, objects: int | None = OBJECTS) -> list[Line]:
    """`objects`: how many of a row's objects are shown; None: all. Raises Forbidden."""
    names = names_of(actor=actor, ids={one for entry in entries for one in _ids(entry, objects)})
    return [_line(entry, names, objects) for entry in entries]


def facts_of(actor: Actor, rows: Sequence[Mapping[str, object]]) -> list[tuple[Fact, ...]]:
    """Pairs such as the filters of exports. Raises Forbidden."""
    names = names_of(actor=actor, ids={one for row in rows for one in _ids_in(row)})
    return [_facts(row, names) for row in rows]


def _line(entry: AuditEntry, names: Mapping[UUID, Name], objects: int | None) -> Line:
    by_other = entry.member_id is not None and entry.member_id != entry.principal_id
    return Line(
        entry=entry,
        who=names.get(entry.principal_id),
        behind=names.get(entry.member_id) if by_other and entry.member_id else None,
        objects=tuple((one, names.get(one)) for one in entry.object_ids[:objects]),
        detail=_facts(entry.detail, names),
        context=_facts(entry.context, names),
    )


def _ids(entry: AuditEntry, objects: int | None) -> set[UUID]:
    own = {entry.principal_id, entry.member_id or entry.principal_id, *entry.object_ids[:objects]}
    return own | _ids_in(entry.detail) | _ids_in(entry.context)


def _ids_in(values: Mapping[str, object]) -> set[UUID]:
    return {found for value in values.values() if (found := uuid_or_none(str(value))) is not None}


def _facts(values: Mapping[str, object], names: Mapping[UUID, Name]) -> tuple[Fact, ...]:
    found = []
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        id = uuid_or_none(text)
        found.append(Fact(name, text, names.get(id) if id else None))
    return tuple(found)
