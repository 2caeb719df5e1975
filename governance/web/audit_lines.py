"""Audit entries with names for ids; all names of a page cost one query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from governance.actor import Actor
from governance.audit.reading.selectors import names_of
from governance.object_names import PLACED, Name
from governance.vocabulary import PrincipalKind
from governance.web.audit_facts import Fact, facts_from, ids_of

if TYPE_CHECKING:
    from governance.models import AuditEntry

OBJECTS = 3  # of one row in a list
OBJECTS_OF_ONE = 100  # where a row stands alone: one may name tens of thousands


@dataclass(frozen=True)
class Line:
    """An entry with the names of its ids. behind: the member whose key acted; objects: the first few; more: the number
    of others.
    """

    entry: "AuditEntry"
    who: Name | None
    behind: Name | None
    objects: tuple[tuple[UUID, Name | None], ...]
    detail: tuple[Fact, ...]
    context: tuple[Fact, ...]

    @property
    def names(self) -> list[Name]:
        """Return the distinct names, since many memories lie in one namespace."""
        return list(dict.fromkeys(name for _id, name in self.objects if name))

    @property
    def has_place(self) -> bool:
        return self.entry.object_type == PLACED

    @property
    def is_key(self) -> bool:
        return self.entry.principal_kind == PrincipalKind.API_KEY

    @property
    def is_system(self) -> bool:
        return self.entry.principal_kind == PrincipalKind.SYSTEM

    @property
    def more(self) -> int:
        return len(self.entry.object_ids) - len(self.objects)


def lines_of(actor: Actor, entries: "Sequence[AuditEntry]", *, objects: int = OBJECTS) -> list[Line]:
    """Return entries with names. `objects`: the number of objects shown for each entry. Raises Forbidden."""
    names = names_of(actor=actor, ids={id for entry in entries for id in _ids(entry, objects)})
    return [_line(entry, names, objects) for entry in entries]


def facts_of(actor: Actor, rows: Sequence[Mapping[str, object]]) -> list[tuple[Fact, ...]]:
    """Return the pairs of each mapping (such as the filters of an export) as facts. Raises Forbidden."""
    names = names_of(actor=actor, ids={id for row in rows for id in ids_of(row)})
    return [facts_from(row, names) for row in rows]


def _line(entry: "AuditEntry", names: Mapping[UUID, Name], objects: int) -> Line:
    by_other = entry.member_id is not None and entry.member_id != entry.principal_id
    return Line(
        entry=entry,
        who=names.get(entry.principal_id),
        behind=names.get(entry.member_id) if by_other and entry.member_id else None,
        objects=tuple((id, names.get(id)) for id in entry.object_ids[:objects]),
        detail=facts_from(entry.detail, names),
        context=facts_from(entry.context, names),
    )


def _ids(entry: "AuditEntry", objects: int) -> set[UUID]:
    own = {entry.principal_id, entry.member_id or entry.principal_id, *entry.object_ids[:objects]}
    return own | ids_of(entry.detail) | ids_of(entry.context)
