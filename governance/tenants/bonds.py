"""Bindings of an API key: one persona, some namespaces, one purpose. A call that names another is refused."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from governance.access.decisions.grantables import grantable_of
from governance.access.decisions.rules import READS_CONTENT
from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.models import ApiKey, Persona
from governance.vocabulary import PersonaKind

MOST_NAMESPACES = 50
LONGEST_PURPOSE = 200
BONDS = frozenset({"persona", "namespaces", "purpose"})


@dataclass(frozen=True)
class KeyBonds:
    """The bindings of a key. persona: an agent or a persona of its member, by id or name. namespaces: paths, with all
    below.
    """

    persona: str | None = None
    namespaces: tuple[str, ...] = ()
    purpose: str = ""


FREE = KeyBonds()


def bonds_set(key: ApiKey, bonds: KeyBonds, parts: Collection[str] = BONDS) -> None:
    """Set these columns on a row that is not saved yet, in the caller's transaction. Raises Invalid."""
    if "persona" in parts:
        key.persona = _find_persona(key, bonds.persona) if bonds.persona is not None else None
    if "namespaces" in parts:
        key.namespaces = check_paths(bonds.namespaces)
    if "purpose" in parts:
        key.purpose = _check_purpose(bonds.purpose)


def bonds_detail(actor: Actor, key: ApiKey) -> dict[str, str | int | bool | None]:
    """Return the bindings for the audit log: ids and numbers, since paths and purposes are free text.

    namespaces: their number; namespace_ids: the ids of those that exist.
    """
    kind = grantable_of("namespace")
    found = [kind.by_name(actor, path) for path in key.namespaces] if kind else []
    return {
        "persona": str(key.persona_id) if key.persona_id else None,
        "namespaces": len(key.namespaces),
        "namespace_ids": " ".join(str(id) for id in found if id),
        "purpose": bool(key.purpose),
    }


def _find_persona(key: ApiKey, reference: str) -> Persona:
    """Return the persona if the member may use it. Raises Invalid, with one message for foreign and unknown ones."""
    try:
        wanted = Q(id=UUID(reference))
    except ValueError:
        wanted = Q(name=reference)
    usable = Q(member_id=key.member_id)
    if key.member.role.name in READS_CONTENT:
        usable |= Q(kind=PersonaKind.AGENT)
    found = list(Persona.objects.filter(wanted, usable, tenant_id=key.tenant_id, removed_at=None)[:2])
    if len(found) != 1:
        none = "no persona of this key's member, and no agent, has this id or name"
        raise Invalid(errors=[FieldError("persona", "several have this name: give the id" if found else none)])
    return found[0]


def _check_purpose(purpose: str) -> str:
    if len(purpose) > LONGEST_PURPOSE or not purpose.isprintable():
        raise Invalid(errors=[FieldError("purpose", f"at most {LONGEST_PURPOSE} printable characters")])
    return purpose


def check_paths(paths: tuple[str, ...]) -> list[str]:
    """Return the distinct paths in the given order: a call without a namespace writes to the first. Raises Invalid."""
    if len(paths) > MOST_NAMESPACES:
        raise Invalid(errors=[FieldError("namespaces", f"at most {MOST_NAMESPACES}")])
    for path in paths:
        if not path.startswith("/") or path.endswith("/") or len(path) > 200 or not path.isprintable():
            raise Invalid(errors=[FieldError("namespaces", "paths such as /team/notes")])
    return list(dict.fromkeys(paths))
