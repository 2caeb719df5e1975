"""Grantees: roles, members, personas and keys. Each owns an access group, created at its first grant."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Model, Q

from governance.access.decisions.rules import READS_CONTENT
from governance.errors import FieldError, Invalid
from governance.ids import uuid7
from governance.models import AccessGroup, ApiKey, Member, Persona, Role
from governance.vocabulary import GranteeKind, PersonaKind, RoleName


@dataclass(frozen=True)
class Grantee:
    """The grantee with this kind and id. `name`: for display. `role`: its own role, or the role of its member."""

    kind: GranteeKind
    id: UUID
    name: str
    role: RoleName | None = None
    is_agent: bool = False

    @property
    def reaches(self) -> frozenset[RoleName]:
        """Return the roles that can use a grant to this grantee: for an agent, all roles that may speak as it."""
        if self.is_agent:
            return READS_CONTENT
        return frozenset() if self.role is None else frozenset({self.role})


def grantee_find(tenant_id: UUID, kind: GranteeKind, reference: str, *, field: str = "principal") -> Grantee:
    """Return the grantee with this id; a role is found by its name too. Use within the tenant's transaction.

    Raises Invalid, with the same message for an unknown, a foreign and an ended grantee.
    """
    wanted = _reference_condition(kind, reference)
    found = _select_present(kind).filter(wanted, tenant_id=tenant_id).first() if wanted is not None else None
    if found is None:
        raise Invalid(errors=[FieldError(f"{field}.id", f"no {kind.replace('_', ' ')} of this tenant has this id")])
    return _grantee(kind, found)


def group_ensure(tenant_id: UUID, holder: Grantee) -> AccessGroup:
    """Return the grantee's group; create it if missing. Writes: AccessGroup?"""
    new = AccessGroup(id=uuid7(), tenant_id=tenant_id, kind=holder.kind, principal_id=holder.id)
    AccessGroup.objects.bulk_create([new], ignore_conflicts=True)
    return AccessGroup.objects.get(tenant_id=tenant_id, kind=holder.kind, principal_id=holder.id)


def name_grantees(groups: Iterable[AccessGroup]) -> dict[UUID, Grantee]:
    """Return grantees, ended ones included, by the ids of their groups. One query for each kind."""
    wanted: dict[GranteeKind, dict[UUID, UUID]] = defaultdict(dict)
    for group in groups:
        wanted[GranteeKind(group.kind)][group.principal_id] = group.id
    return {
        group_ids[row.pk]: _grantee(kind, row)
        for kind, group_ids in wanted.items()
        for row in _select_all(kind).filter(pk__in=group_ids)
    }


def _reference_condition(kind: GranteeKind, reference: str) -> Q | None:
    try:
        return Q(pk=UUID(reference))
    except ValueError:
        return Q(name=reference) if kind is GranteeKind.ROLE and reference.isprintable() else None


def _select_all(kind: GranteeKind):  # type: ignore[no-untyped-def]  # querysets of four models
    if kind is GranteeKind.ROLE:
        return Role.objects.all()
    if kind is GranteeKind.MEMBER:
        return Member.objects.select_related("role")
    return (Persona if kind is GranteeKind.PERSONA else ApiKey).objects.select_related("member__role")


def _select_present(kind: GranteeKind):  # type: ignore[no-untyped-def]
    ended = {GranteeKind.MEMBER: "removed_at", GranteeKind.PERSONA: "removed_at", GranteeKind.API_KEY: "revoked_at"}
    return _select_all(kind).filter(**{ended[kind]: None}) if kind in ended else _select_all(kind)


def _grantee(kind: GranteeKind, row: Model) -> Grantee:
    if isinstance(row, Role):
        return Grantee(kind, row.id, row.name, RoleName(row.name))
    if isinstance(row, Member):
        return Grantee(kind, row.id, row.display_name, RoleName(row.role.name))
    if isinstance(row, ApiKey):
        return Grantee(kind, row.id, row.name or row.prefix, RoleName(row.member.role.name))
    assert isinstance(row, Persona)
    role = RoleName(row.member.role.name) if row.member else None
    return Grantee(kind, row.id, row.name, role, is_agent=row.kind == PersonaKind.AGENT)
