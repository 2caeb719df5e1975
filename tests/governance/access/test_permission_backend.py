"""`user.has_perm` answers what the engine answers, in the tenant of the object."""

from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest

from governance.access.decisions.grantables import grantable_of
from governance.access.decisions.services import is_allowed
from governance.database import acting
from governance.errors import NotFound
from governance.models import User
from governance.vocabulary import Action
from tests.factories import Person, World
from tests.harness.cases import each_case
from vault.models import Cube, Namespace

PEOPLE = ("olivia", "alice", "bob", "ada", "charlie")
PERMISSIONS = {"view": Action.READ, "change": Action.WRITE, "share": Action.SHARE, "govern": Action.GOVERN}


def user_of(person: Person) -> User:
    with acting(person.actor):
        return User.objects.get(id=person.member.user_id)


def cube_of(world: World, memory_id: str) -> Cube:
    with acting(world.olivia.actor):
        return Cube.objects.get(id=memory_id)


def engine_answer(person: Person, kind_name: str, object_id: UUID, action: Action) -> bool:
    kind = grantable_of(kind_name)
    assert kind is not None
    with acting(person.actor):
        try:
            return is_allowed(person.actor, kind.permissions[action], kind.locate(person.actor, object_id))
        except NotFound:
            return False


@pytest.fixture
def memories(world: World) -> list[Cube]:
    """Alice's private memory, one of the team, one granted to bob, and one denied to him."""
    alice, olivia = world.client("alice"), world.client("olivia")
    ids = []
    for body in ({}, {"namespace": "/team"}, {}, {"namespace": "/team"}):
        reply = alice.post("memories/", {"content": "The otter sleeps.", "allow_duplicates": True, **body})
        ids.append(reply.json["results"][0]["id"])
    for memory_id, effect in ((ids[2], "allow"), (ids[3], "deny")):
        given = {
            "principal": {"kind": "member", "id": str(world.bob.member.id)},
            "object": {"type": "memory", "id": memory_id},
            "action": "read",
            "effect": effect,
        }
        assert olivia.post("grants/", given).status == 201
    return [cube_of(world, id) for id in ids]


@each_case("who", PEOPLE)
def test_has_perm_answers_what_the_engine_answers(world: World, memories: list[Cube], who: str) -> None:
    person = world.person(who)
    user = user_of(person)
    for cube in memories:
        for name, action in PERMISSIONS.items():
            expected = engine_answer(person, "memory", cube.id, action)
            assert user.has_perm(f"vault.{name}_cube", cube) is expected, (who, name)
    with acting(world.olivia.actor):
        places = list(Namespace.objects.all())
    for place in places:
        expected = engine_answer(person, "namespace", place.id, Action.READ)
        assert user.has_perm("vault.view_namespace", place) is expected


def test_a_grant_opens_and_a_denial_closes(world: World, memories: list[Cube]) -> None:
    bob = user_of(world.bob)
    assert [bob.has_perm("vault.view_cube", cube) for cube in memories] == [False, True, True, False]


def test_what_names_no_object_or_no_such_permission_is_refused(world: World, memories: list[Cube]) -> None:
    olivia = user_of(world.olivia)
    assert olivia.has_perm("vault.view_cube", memories[1])
    for permission, thing in (
        ("vault.view_cube", None),
        ("vault.view_namespace", memories[1]),
        ("governance.view_cube", memories[1]),
        ("vault.fly_cube", memories[1]),
        ("view_cube", memories[1]),
        ("vault.view_cube", world.olivia.member),
    ):
        assert not olivia.has_perm(permission, thing), permission


def test_who_has_left_or_is_inactive_has_no_permission(
    world: World, memories: list[Cube], superuser: Callable[[], psycopg.Connection]
) -> None:
    alice = user_of(world.alice)
    assert alice.has_perm("vault.view_cube", memories[0])
    superuser().execute("UPDATE governance_member SET removed_at = now() WHERE id = %s", [world.alice.member.id])
    assert not alice.has_perm("vault.view_cube", memories[0])
    bob = user_of(world.bob)
    bob.is_active = False
    assert not bob.has_perm("vault.view_cube", memories[1])
