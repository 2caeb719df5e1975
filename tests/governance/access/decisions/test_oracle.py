"""Authorisation is what the rules say: in made-up worlds the engine and the queries agree with an oracle."""

from collections import Counter
from dataclasses import dataclass
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
from tests.governance.access.decisions.oracle import applies, by_role, may
from tests.governance.access.decisions.worlds import disagreements, imagine, store
from tests.harness.evidence import Evidence

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Size:
    """The least number of questions, and the numbers of memories, grants and questions of a world."""

    questions: int
    memories: int
    grants: int
    a_world: int


CI = Size(questions=20_000, memories=14, grants=26, a_world=900)
FULL = Size(questions=1_000_000, memories=100, grants=60, a_world=5_500)


def test_engine_and_lists_say_what_the_oracle_says(world: World, full_size: bool, evidence: Evidence) -> None:
    size = FULL if full_size else CI
    members = people(world)
    asked, worlds = Counter[bool](), list[int]()

    @settings(
        max_examples=size.questions // size.a_world,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def in_every_world(random: Random) -> None:
        found = answers(members, random, size)
        assert [answer for answer in found if answer] == []
        asked.update(bool(answer) for answer in found)
        worlds.append(len(found))

    in_every_world()
    assert asked[False] >= size.questions, asked
    figures = {"questions": asked[False], "worlds": len(worlds), "disagreements": asked[True]}
    evidence(row=3, name="oracle", figures=figures | {"lines of the oracle": lines_of_the_oracle()})


def test_the_oracle_is_short() -> None:
    """So short that it can be read and believed."""
    assert lines_of_the_oracle() <= 40


def lines_of_the_oracle() -> int:
    return sum(len(getsource(part).strip().splitlines()) for part in (may, by_role, applies))


def people(world: World) -> list[Member]:
    """A member for each of MEMBERS."""
    more = [
        person_add(world.acme, f"{role}@acme.example", role)
        for role in (RoleName.ADMIN, RoleName.EDITOR, RoleName.VIEWER)
    ]
    admin, editor, viewer = more
    persons = [world.olivia, admin, world.alice, editor, world.bob, viewer, world.ada]
    return [person.member for person in persons]


def answers(members: list[Member], random: Random, size: Size) -> list[str]:
    """All questions about one world; an empty text where nobody disagrees."""
    with tenant_transaction(members[0].tenant_id):
        told = imagine(random, memories=size.memories, grants=size.grants)
        stored = store(told, members, random)
        found = list(disagreements(stored, random))
        transaction.set_rollback(True)
    return found
