"""Authorisation is what the rules say: in made-up worlds the engine and the queries agree with an oracle."""

from collections import Counter
from inspect import getsource
from random import Random

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from governance.database import tenant_transaction
from governance.models import Member
from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.governance.authz.oracle import applies, by_role, may
from tests.governance.authz.worlds import disagreements, imagine, store

pytestmark = pytest.mark.long

QUESTIONS, QUESTIONS_IN_FULL = 20_000, 1_000_000


def test_engine_and_lists_say_what_the_oracle_says(world: World, full_size: bool) -> None:
    wanted = QUESTIONS_IN_FULL if full_size else QUESTIONS
    members = people(world)
    asked = Counter[bool]()

    @settings(
        max_examples=wanted // 900,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def in_every_world(random: Random) -> None:
        found = answers(members, random)
        assert [one for one in found if one] == []
        asked.update(bool(one) for one in found)

    in_every_world()
    assert asked[False] >= wanted, asked


def test_the_oracle_is_short() -> None:
    """So short that it can be read and believed."""
    assert sum(len(getsource(part).strip().splitlines()) for part in (may, by_role, applies)) <= 40


def people(world: World) -> list[Member]:
    """A member for each of MEMBERS."""
    more = [
        person_add(world.acme, f"{role}@acme.example", role)
        for role in (RoleName.ADMIN, RoleName.EDITOR, RoleName.VIEWER)
    ]
    admin, editor, viewer = more
    persons = [world.olivia, admin, world.alice, editor, world.bob, viewer, world.ada]
    return [person.member for person in persons]


def answers(members: list[Member], random: Random) -> list[str]:
    """All questions about one world; an empty text where nobody disagrees."""
    with tenant_transaction(members[0].tenant_id):
        stored = store(imagine(random), members, random)
        found = list(disagreements(stored))
        transaction.set_rollback(True)
    return found
