"""Names of the objects whose ids governance stores: namespaces, keys, members and the like, never content.

The caller checks first that the reader may know the object. Use inside `acting`.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import CharField, F, Q, QuerySet, Value
from django.db.models.functions import Concat

from governance.errors import FieldError, Invalid
from governance.models import (
    ApiKey,
    AuditSink,
    Invitation,
    Member,
    Persona,
    Policy,
    Role,
    RoleTemplate,
    Tenant,
    Webhook,
)

ID = re.compile(r"(?<![/0-9a-f-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f-])")
NOTHING = Value("", output_field=CharField())
LONGEST_NAME = 254  # of an e-mail address
Rows = Callable[[UUID], QuerySet[Any]]
"""The rows of one kind in a tenant, with `called`, and with `more`, which no two share, whatever they are called."""
PLACED = "memory"  # has no name that is no content: it is told by where it lies, and not found by that


@dataclass(frozen=True)
class Name:
    """The name of an object. `more`: a unique addition, such as a member's e-mail address or a key's prefix; may be
    empty.
    """

    kind: str
    text: str
    more: str = ""

    def __str__(self) -> str:
        """Return the name and its addition, or only the name if both are equal."""
        text, more = self.text.casefold(), self.more.casefold()
        if more.startswith(f"{text}@"):
            return self.more
        return self.text if more in {"", text} else f"{self.text} ({self.more})"


def _rows_named_by(model: Any, field: str, more: Any = NOTHING) -> Rows:
    return lambda tenant_id: model.objects.filter(tenant_id=tenant_id).annotate(called=F(field), more=more)


_rows: dict[str, Rows] = {
    "member": _rows_named_by(Member, "display_name", F("user__email")),
    "api_key": _rows_named_by(ApiKey, "name", Concat(Value("mos_"), F("prefix"), Value("_…"))),
    "persona": _rows_named_by(Persona, "name"),
    "role": _rows_named_by(Role, "name"),
    "policy": _rows_named_by(Policy, "name"),
    "role_template": _rows_named_by(RoleTemplate, "name"),
    "invitation": _rows_named_by(Invitation, "email"),
    "audit_sink": _rows_named_by(AuditSink, "name"),
    "webhook": _rows_named_by(Webhook, "url"),
    "tenant": lambda tenant_id: Tenant.objects.filter(id=tenant_id).annotate(called=F("name"), more=F("slug")),
}


_clean: dict[str, Callable[[str], str]] = {}


def declare_names(kind: str, rows: Rows, clean: Callable[[str], str] = str) -> None:
    """Register the query that names objects of `kind`, for packages above governance.

    clean: makes the name for readers of a stored one.
    """
    _rows[kind], _clean[kind] = rows, clean


def names_find(tenant_id: UUID, ids: Collection[UUID]) -> dict[UUID, Name]:
    """Return the names of `ids` in the tenant, ended objects included. One query.

    A memory is named by the path of its namespace. A second query runs if a name itself contains an id.
    """
    found = dict(_select_names(tenant_id, [*_rows], Q(id__in=set(ids)))) if ids else {}
    within = {id for name in found.values() for id in ids_in(name.text)}
    inner = dict(_select_names(tenant_id, [*_rows], Q(id__in=within))) if within else {}
    return {id: replace(name, text=replace_ids(name.text, inner)) for id, name in found.items()}


def ids_in(text: str) -> list[UUID]:
    """Return the ids in a text that stand alone or in a name; ids within web addresses are left out."""
    return [UUID(id) for id in ID.findall(text)]


def replace_ids(text: str, names: Mapping[UUID, Name]) -> str:
    """Return the text with the ids in `names` replaced by their names."""
    return ID.sub(lambda found: str(names.get(UUID(found[0]), found[0])), text)


def find_id(tenant_id: UUID, text: str, *, field: str, kinds: Sequence[str] = ()) -> UUID:
    """Return the id of the object that `text` identifies: by its id, its unique field (e-mail address, path) or its
    name.

    They are tried in this order, so that a member who is named like another's address does not match first. kinds: the
    kinds to search; if two have the name, the first counts. Raises Invalid for `field`. Two queries.
    """
    try:
        return UUID(text)
    except ValueError:
        pass
    if len(text) > LONGEST_NAME or "\x00" in text:
        raise Invalid(errors=[FieldError(field, "nothing has this id or name")])
    wanted = [*(kinds or (kind for kind in _rows if kind != PLACED))]
    found = _select_names(tenant_id, wanted, Q(more__iexact=text)) or _select_names(
        tenant_id, wanted, Q(called__iexact=text)
    )
    first = min((wanted.index(name.kind) for _, name in found), default=None)
    ids = [id for id, name in found if wanted.index(name.kind) == first]
    if len(ids) != 1:
        known = "several have this name: give the e-mail address or the id" if ids else "nothing has this id or name"
        raise Invalid(errors=[FieldError(field, known)])
    return ids[0]


def _select_names(tenant_id: UUID, kinds: Sequence[str], wanted: Q) -> list[tuple[UUID, Name]]:
    parts = [
        _rows[kind](tenant_id)
        .filter(wanted)
        .annotate(named=Value(kind, output_field=CharField()))
        .order_by()
        .values_list("id", "called", "more", "named")
        for kind in kinds
    ]
    rows = parts[0].union(*parts[1:], all=True)
    return [
        (id, Name(kind, clean(called or more), clean(more)))
        for id, called, more, kind in rows
        for clean in (_clean.get(kind, str),)
    ]
