"""Role × scope × target, against a table written by hand: what is not listed is denied."""

from dataclasses import replace
from itertools import product
from uuid import UUID, uuid4

import pytest

from governance.access.decisions.rules import SCOPE_PERMISSIONS, Decision, Target, decide, sees_private
from governance.access.decisions.services import authorize
from governance.actor import Actor, CallContext, system_actor
from governance.errors import Forbidden, NotFound
from governance.vocabulary import Channel, Permission, PrincipalKind, RoleName, Scope
from tests.harness.cases import each_case
from tests.harness.databases import Clone

TENANT, MEMBER, SOMEBODY = UUID(int=1), UUID(int=2), UUID(int=3)

READ = {Permission.MEMORY_READ, Permission.JOB_READ, Permission.PERSONA_USE}
WRITE = {
    Permission.MEMORY_CREATE,
    Permission.MEMORY_UPDATE,
    Permission.MEMORY_DELETE,
    Permission.NAMESPACE_CREATE,
    Permission.JOB_READ,
    Permission.MEMORY_FREEZE,
    Permission.PERSONA_USE,
    Permission.PERSONA_CREATE,
    Permission.PERSONA_UPDATE,
}
CHAT = {
    Permission.CONVERSATION_USE,
    Permission.PERSONA_USE,
    Permission.PERSONA_CREATE,
    Permission.PERSONA_UPDATE,
}
SHARE = {Permission.ACCESS_SHARE, Permission.ACCESS_GOVERN}
GOVERN = {
    Permission.MEMBER_MANAGE,
    Permission.APIKEY_MANAGE,
    Permission.OPERATIONS_MANAGE,
    Permission.AUDIT_READ,
    Permission.HOLD_MANAGE,
    Permission.SUBJECT_MANAGE,
    Permission.POLICY_READ,
    Permission.POLICY_MANAGE,
    Permission.GRANT_MANAGE,
    Permission.TEMPLATE_MANAGE,
    Permission.STORE_MANAGE,
}
BY_ROLE = {
    RoleName.OWNER: READ | WRITE | CHAT | SHARE | GOVERN,
    RoleName.ADMIN: READ | WRITE | CHAT | SHARE | GOVERN,
    RoleName.EDITOR: READ | WRITE | CHAT | SHARE,
    RoleName.VIEWER: READ | CHAT,
    RoleName.AUDITOR: {Permission.AUDIT_READ, Permission.POLICY_READ, Permission.JOB_READ},
}
BY_SCOPE = {Scope.MEMORIES_READ: READ, Scope.MEMORIES_WRITE: WRITE, Scope.CHAT: CHAT, Scope.ADMIN: GOVERN | SHARE}


def actor(role: RoleName | None, *scopes: Scope, limited: bool = False) -> Actor:
    return Actor(
        tenant_id=TENANT,
        principal_kind=PrincipalKind.API_KEY if limited else PrincipalKind.MEMBER,
        principal_id=MEMBER,
        member_id=MEMBER,
        role=role,
        scopes=frozenset(scopes) if limited else None,
        request_id="request-of-a-test",
    )


def target(*private_to: UUID | None, tenant: UUID = TENANT) -> Target:
    return Target("memory", UUID(int=9), tenant, private_to=frozenset(private_to))


@each_case(("role", "permission"), list(product(RoleName, Permission)))
def test_a_role_may_what_is_listed_and_nothing_else(role: RoleName, permission: Permission) -> None:
    expected = Decision(allowed=permission in BY_ROLE[role], rule=f"role:{role}")
    assert decide(actor(role), permission, None) == expected


@each_case(("scope", "permission"), list(product(Scope, Permission)))
def test_a_key_may_what_its_scope_allows_and_nothing_else(scope: Scope, permission: Permission) -> None:
    allowed = permission in BY_SCOPE[scope]
    expected = Decision(allowed=allowed, rule="role:owner" if allowed else "scopes")
    assert decide(actor(RoleName.OWNER, scope, limited=True), permission, None) == expected


@each_case(("role", "scope", "permission"), list(product(RoleName, Scope, Permission)))
def test_a_key_never_may_more_than_its_member(role: RoleName, scope: Scope, permission: Permission) -> None:
    by_key = decide(actor(role, scope, limited=True), permission, None).allowed
    assert by_key == (permission in BY_ROLE[role] and permission in BY_SCOPE[scope])


@each_case("permission", Permission)
def test_default_is_deny(permission: Permission) -> None:
    assert decide(actor(None), permission, None) == Decision(allowed=False, rule="role:None")
    assert decide(actor(RoleName.OWNER, limited=True), permission, None) == Decision(allowed=False, rule="scopes")


def test_scopes_add_up_and_each_permission_has_one() -> None:
    both = actor(RoleName.EDITOR, Scope.MEMORIES_READ, Scope.CHAT, limited=True)
    assert {permission for permission in Permission if decide(both, permission, None).allowed} == READ | CHAT
    assert set().union(*SCOPE_PERMISSIONS.values()) == set(Permission)


@pytest.mark.parametrize("permission", [Permission.MEMORY_READ, Permission.MEMORY_UPDATE, Permission.MEMORY_DELETE])
def test_what_is_private_is_its_owners_and_those_who_govern(permission: Permission) -> None:
    editor = actor(RoleName.EDITOR)
    assert decide(editor, permission, target()).allowed
    assert decide(editor, permission, target(MEMBER)).allowed
    assert decide(editor, permission, target(SOMEBODY)) == Decision(allowed=False, rule="private")
    assert decide(editor, permission, target(MEMBER, SOMEBODY)) == Decision(allowed=False, rule="private")
    assert decide(editor, permission, target(None)) == Decision(allowed=False, rule="private")
    for role in (RoleName.OWNER, RoleName.ADMIN):
        assert decide(actor(role), permission, target(SOMEBODY)).allowed
        assert sees_private(actor(role))
    assert not sees_private(editor)


@each_case("permission", Permission)
def test_the_system_may_and_says_so(permission: Permission) -> None:
    system = system_actor(tenant_id=TENANT, request_id="job")
    assert decide(system, permission, target(SOMEBODY)) == Decision(allowed=True, rule="system")


@pytest.mark.parametrize("who", [actor(RoleName.OWNER), system_actor(tenant_id=TENANT, request_id="job")])
def test_another_tenants_object_is_not_found_for_any_role(who: Actor) -> None:
    for permission in Permission:
        with pytest.raises(NotFound):
            authorize(who, permission, target(tenant=uuid4()))


def test_a_foreign_object_is_not_found_even_where_the_permission_is_missing() -> None:
    with pytest.raises(NotFound):
        authorize(actor(None), Permission.MEMORY_READ, target(tenant=uuid4()))


@each_case(
    ("who", "kept_to", "rule"),
    [
        (actor(RoleName.VIEWER), MEMBER, "role:viewer"),
        (actor(None), MEMBER, "role:None"),
        (actor(RoleName.EDITOR, Scope.MEMORIES_READ, limited=True), MEMBER, "scopes"),
        (actor(RoleName.EDITOR), SOMEBODY, "private"),
    ],
)
def test_a_refusal_names_permission_rule_and_object(database: Clone, who: Actor, kept_to: UUID, rule: str) -> None:
    with pytest.raises(Forbidden) as refusal:
        authorize(who, Permission.MEMORY_UPDATE, target(kept_to))
    told = refusal.value
    assert (told.permission, told.rule) == (Permission.MEMORY_UPDATE, rule)
    assert (told.object_type, told.object_id) == ("memory", UUID(int=9))


def test_a_refusal_without_an_object_names_the_tenant(database: Clone) -> None:
    with pytest.raises(Forbidden) as refusal:
        authorize(actor(RoleName.VIEWER), Permission.MEMORY_CREATE)
    assert (refusal.value.object_type, refusal.value.object_id) == ("tenant", TENANT)


@pytest.mark.parametrize("role", [RoleName.OWNER, RoleName.EDITOR, RoleName.VIEWER])
@pytest.mark.parametrize(
    ("purposes", "asked", "allowed"),
    [
        (None, "", True),
        (None, "x", True),
        ({"x"}, "x", True),
        ({"x"}, "", False),
        ({"x"}, "y", False),
        (set(), "x", False),
    ],
)
def test_memory_bound_to_purposes_is_read_for_those_purposes_only(
    role: RoleName, purposes: set[str] | None, asked: str, allowed: bool
) -> None:
    bound = replace(target(), purposes=None if purposes is None else frozenset(purposes), purpose_rule="policy:bound@3")
    reader = replace(actor(role), context=CallContext(channel=Channel.API, purpose=asked))
    expected = Decision(allowed=allowed, rule=f"role:{role}" if allowed else "policy:bound@3")
    assert decide(reader, Permission.MEMORY_READ, bound) == expected
    assert decide(system_actor(tenant_id=TENANT, request_id="job-of-a-test"), Permission.MEMORY_READ, bound).allowed
