"""Members, keys and links are made by those who govern the tenant, and by nobody else."""

from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest

from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, Forbidden, Invalid, NotFound
from governance.models import ApiKey, Member, Persona
from governance.tenants.selectors import member_by_email
from governance.tenants.services import apikey_create, member_add, sign_in_link_create
from governance.vocabulary import Permission, RoleName, Scope
from tests.factories import World, actor_of
from tests.governance.tables import read_all_rows

Superuser = Callable[[], psycopg.Connection]
Write = Callable[[World, Actor], object]

ON_ALICE: dict[str, tuple[Permission, Write]] = {
    "apikey_create": (
        Permission.APIKEY_MANAGE,
        lambda world, actor: apikey_create(actor=actor, member=world.alice.member, scopes=[Scope.CHAT]),
    ),
    "sign_in_link_create": (
        Permission.MEMBER_MANAGE,
        lambda world, actor: sign_in_link_create(actor=actor, member=world.alice.member),
    ),
}
AT_HOME: dict[str, tuple[Permission, Write]] = {
    **ON_ALICE,
    "member_add": (
        Permission.MEMBER_MANAGE,
        lambda world, actor: member_add(actor=actor, email="new@acme.example", role=RoleName.OWNER),
    ),
    "member_by_email": (
        Permission.MEMBER_MANAGE,
        lambda world, actor: member_by_email(actor=actor, email="alice@acme.example"),
    ),
}


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_it_refuses_those_who_do_not_govern_and_leaves_no_row(world: World, superuser: Superuser, who: str) -> None:
    before = read_all_rows(superuser())
    for write, (permission, call) in AT_HOME.items():
        with pytest.raises(Forbidden) as refusal:
            call(world, world.person(who).actor)
        assert refusal.value.permission == permission, write
        assert read_all_rows(superuser()) == before, write


def test_another_tenants_member_is_not_found_and_gets_no_row(world: World, superuser: Superuser) -> None:
    before = read_all_rows(superuser())
    for write, (_, call) in ON_ALICE.items():
        with pytest.raises(NotFound):
            call(world, world.charlie.actor)
        assert read_all_rows(superuser()) == before, write


def test_another_tenants_member_is_not_found_by_address(world: World) -> None:
    with pytest.raises(NotFound):
        member_by_email(actor=world.charlie.actor, email="alice@acme.example")


def test_an_owners_key_without_the_scope_may_not(world: World) -> None:
    limited = actor_of(world.olivia.member, frozenset(Scope) - {Scope.ADMIN}, role=RoleName.OWNER)
    for write, (_, call) in AT_HOME.items():
        with pytest.raises(Forbidden) as refusal:
            call(world, limited)
        assert refusal.value.rule == "scopes", write


def test_an_owner_may(world: World) -> None:
    for write, (_, call) in AT_HOME.items():
        assert call(world, world.olivia.actor), write


def test_a_new_member_has_a_role_and_a_persona_of_their_own(world: World) -> None:
    member = member_add(actor=world.olivia.actor, email="Vera@Acme.example", role=RoleName.VIEWER)
    with acting(world.olivia.actor):
        row = Member.objects.select_related("role", "user").get(id=member.id)
        assert (row.role.name, row.user.email, row.tenant_id) == ("viewer", "Vera@Acme.example", world.acme.id)
        assert Persona.objects.get(member=row).name == "Vera"


def test_nobody_is_a_member_twice_however_the_address_is_written(world: World, superuser: Superuser) -> None:
    before = read_all_rows(superuser())
    with pytest.raises(Conflict):
        member_add(actor=world.olivia.actor, email="ALICE@acme.example", role=RoleName.OWNER)
    assert read_all_rows(superuser()) == before


def test_it_refuses_what_is_no_address(world: World) -> None:
    for email in ("", "nobody", "a@b@c", "a b@acme.example"):
        with pytest.raises(Invalid):
            member_add(actor=world.olivia.actor, email=email, role=RoleName.VIEWER)


def test_a_person_of_one_tenant_may_join_another_and_stays_one_user(world: World) -> None:
    joined = member_add(actor=world.charlie.actor, email="alice@acme.example", role=RoleName.VIEWER)
    assert joined.user_id == world.alice.member.user_id
    assert joined.tenant_id == world.other.id


def test_a_key_that_has_expired_already_is_not_made(world: World) -> None:
    with pytest.raises(Invalid):
        apikey_create(
            actor=world.olivia.actor,
            member=world.alice.member,
            scopes=[Scope.CHAT],
            expires_at=datetime(2020, 1, 1, tzinfo=UTC),
        )
    with acting(world.olivia.actor):
        assert ApiKey.objects.filter(member=world.alice.member).count() == 1


def test_what_is_made_shows_no_secret_in_its_repr(world: World) -> None:
    key = apikey_create(actor=world.olivia.actor, member=world.alice.member, scopes=[Scope.CHAT])
    link = sign_in_link_create(actor=world.olivia.actor, member=world.alice.member)
    assert key.text not in repr(key)
    assert link.url not in repr(link)
