"""Random lives of memories against a simple model: what is legal happens and is stored, all else is refused whole."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.db import DatabaseError
from django.db.models.functions import Now
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from governance.actor import Actor
from governance.database import acting
from governance.errors import DomainError
from tests.factories import World
from vault.cubes.changing import cube_move, cube_rollback
from vault.cubes.drafts import CubeChanges, CubeDraft
from vault.cubes.services import cube_delete, cube_purge, cube_restore, cube_update, cubes_add
from vault.holds.services import cube_freeze, cube_unfreeze
from vault.lifecycle.fusion import cube_split, cubes_fuse, fusion_undo
from vault.lifecycle.renewal import cube_renew
from vault.lifecycle.rules import is_legal
from vault.lifecycle.services import cube_transition
from vault.lifecycle.steps import PlannedStep, steps_write
from vault.models import Cube, CubeVersion, StateTransition
from vault.vocabulary import State

SEARCHABLE = {State.GENERATED, State.ACTIVATED}
LATER = datetime(2099, 1, 31, tzinfo=UTC)
PLACES = ("/team", "/team/notes")
LIVES, LIVES_IN_FULL = 15, 200
CHOICE = st.integers(min_value=0, max_value=99)


@dataclass
class Modelled:
    """The expected state of a memory. sources: all that it was made of, directly or through others."""

    place: str = PLACES[0]
    state: State = State.GENERATED
    version: int = 1
    deleted: bool = False
    expired: bool = False
    held: bool = False
    steps: int = 0
    before_end: State = State.GENERATED
    before_merge: State = State.GENERATED
    sources: frozenset[UUID] = frozenset()


@dataclass
class Group:
    """A fusion or a split that can be undone."""

    parents: tuple[UUID, ...]
    results: tuple[UUID, ...]


@dataclass
class Model:
    memories: dict[UUID, Modelled] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def is_readable(self, one: UUID) -> bool:
        found = self.memories.get(one)
        if found is None or found.deleted or found.expired:
            return False
        return self.has_sources(one)

    def has_sources(self, one: UUID) -> bool:
        sources = [self.memories.get(source) for source in self.memories[one].sources]
        return all(source is not None and not source.deleted and not source.expired for source in sources)

    def is_free(self, one: UUID) -> bool:
        return self.is_readable(one) and not self.memories[one].held

    def made(self, result: UUID, parents: tuple[UUID, ...]) -> None:
        behind = frozenset(parents).union(*(self.memories[one].sources for one in parents))
        self.memories[result] = Modelled(place=self.memories[parents[0]].place, sources=behind)

    def merge(self, parents: tuple[UUID, ...], results: tuple[UUID, ...]) -> None:
        for result in results:
            self.made(result, parents)
        for one in parents:
            memory = self.memories[one]
            memory.before_merge, memory.state, memory.steps = memory.state, State.MERGED, memory.steps + 1
        self.groups.append(Group(parents, results))


class Life(RuleBasedStateMachine):
    actor: Actor

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    def one(self, choice: int) -> UUID:
        ids = sorted(self.model.memories)
        assume(ids)
        return ids[choice % len(ids)]

    def tried(self, is_allowed: bool, act: Callable[[], object]) -> bool:
        """Do it; it must succeed where the model allows it, and be refused where not."""
        if is_allowed:
            act()
        else:
            with pytest.raises(DomainError):
                act()
        return is_allowed

    @rule(choice=CHOICE)
    def create(self, choice: int) -> None:
        place = PLACES[choice % 2]
        draft = CubeDraft("The heron nests. It leaves.", namespace=place, allow_duplicates=True)
        self.model.memories[cubes_add(actor=self.actor, drafts=[draft])[0].cube.id] = Modelled(place=place)

    @rule(choice=CHOICE)
    def edit(self, choice: int) -> None:
        one = self.one(choice)
        memory, changes = self.model.memories[one], CubeChanges(title=f"No. {choice}")
        expected = {memory.version}
        if self.tried(
            self.model.is_free(one),
            lambda: cube_update(actor=self.actor, cube_id=one, expected_versions=expected, changes=changes),
        ):
            memory.version += 1

    @rule(choice=CHOICE)
    def edit_of_another_version_is_refused(self, choice: int) -> None:
        one, changes = self.one(choice), CubeChanges(title="Never")
        expected = {self.model.memories[one].version + 1}
        self.tried(
            False, lambda: cube_update(actor=self.actor, cube_id=one, expected_versions=expected, changes=changes)
        )

    @rule(choice=CHOICE)
    def roll_back(self, choice: int) -> None:
        one = self.one(choice)
        if self.tried(self.model.is_free(one), lambda: cube_rollback(actor=self.actor, cube_id=one, number=1)):
            self.model.memories[one].version += 1

    @rule(choice=CHOICE)
    def move(self, choice: int) -> None:
        one, place = self.one(choice), PLACES[choice % 2]
        if self.tried(self.model.is_free(one), lambda: cube_move(actor=self.actor, cube_id=one, namespace=place)):
            self.model.memories[one].place = place
            self.model.memories[one].version += 1

    @rule(choice=CHOICE, to=st.sampled_from(State))
    def transition(self, choice: int, to: State) -> None:
        one = self.one(choice)
        memory = self.model.memories[one]
        is_allowed = self.model.is_free(one) and is_legal(memory.state, to)
        if self.tried(is_allowed, lambda: cube_transition(actor=self.actor, cube_id=one, to=to)):
            memory.state, memory.steps = to, memory.steps + 1

    @rule(first=CHOICE, second=CHOICE)
    def fuse(self, first: int, second: int) -> None:
        pair = (self.one(first), self.one(second))
        found = [self.model.memories[one] for one in pair]
        is_allowed = (
            pair[0] != pair[1]
            and all(self.model.is_free(one) for one in pair)
            and all(memory.state in SEARCHABLE for memory in found)
            and found[0].place == found[1].place
        )
        made: list[Cube] = []
        if self.tried(is_allowed, lambda: made.append(cubes_fuse(actor=self.actor, cube_ids=pair))):
            self.model.merge(pair, (made[0].id,))

    @rule(choice=CHOICE)
    def split(self, choice: int) -> None:
        one, made = self.one(choice), list[Cube]()
        is_allowed = self.model.is_free(one) and self.model.memories[one].state in SEARCHABLE
        parts = ["It nests.", "It leaves."]
        if self.tried(is_allowed, lambda: made.extend(cube_split(actor=self.actor, cube_id=one, parts=parts))):
            self.model.merge((one,), tuple(cube.id for cube in made))

    @rule(choice=CHOICE)
    def undo_a_fusion(self, choice: int) -> None:
        assume(self.model.groups)
        group = self.model.groups[choice % len(self.model.groups)]
        concerned = (*group.parents, *group.results)
        assume(all(one in self.model.memories for one in concerned))
        memories = self.model.memories
        is_whole = all(memories[one].state is State.MERGED for one in group.parents)
        is_whole = is_whole and all(self.model.is_free(one) for one in concerned)
        assume(is_whole or not self.model.is_free(group.results[0]))
        is_allowed = is_whole and all(memories[one].state is not State.MERGED for one in group.results)
        if self.tried(is_allowed, lambda: fusion_undo(actor=self.actor, cube_id=group.results[0])):
            self.model.groups.remove(group)
            for one in group.parents:
                memories[one].state, memories[one].steps = memories[one].before_merge, memories[one].steps + 1
            for one in group.results:
                memories[one].deleted = True

    @rule(choice=CHOICE)
    def freeze(self, choice: int) -> None:
        one = self.one(choice)
        assume(not self.model.memories[one].held)
        if self.tried(
            self.model.is_readable(one), lambda: cube_freeze(actor=self.actor, cube_id=one, reason="An audit.")
        ):
            self.model.memories[one].held = True

    @rule(choice=CHOICE)
    def unfreeze(self, choice: int) -> None:
        one = self.one(choice)
        assume(self.model.memories[one].held and self.model.is_readable(one))
        cube_unfreeze(actor=self.actor, cube_id=one)
        self.model.memories[one].held = False

    @rule(choice=CHOICE)
    def expire(self, choice: int) -> None:
        """Its time ends, and a sweep marks it."""
        one = self.one(choice)
        assume(self.model.is_free(one))
        memory = self.model.memories[one]
        with acting(self.actor):
            Cube.objects.filter(id=one).update(expires_at=Now())
            cube = Cube.objects.select_related("namespace").get(id=one)
            steps_write(self.actor, [PlannedStep(cube, State.EXPIRED)])
        memory.before_end, memory.state, memory.expired = memory.state, State.EXPIRED, True
        memory.steps += 1

    @rule(choice=CHOICE)
    def renew(self, choice: int) -> None:
        one = self.one(choice)
        memory = self.model.memories[one]
        is_allowed = memory.expired and not memory.deleted and not memory.held and self.model.has_sources(one)
        if self.tried(is_allowed, lambda: cube_renew(actor=self.actor, cube_id=one, expires_at=LATER)):
            memory.state, memory.expired = memory.before_end, False
            memory.version, memory.steps = memory.version + 1, memory.steps + 1

    @rule(choice=CHOICE)
    def delete(self, choice: int) -> None:
        one = self.one(choice)
        if self.tried(self.model.is_free(one), lambda: cube_delete(actor=self.actor, cube_id=one)):
            self.model.memories[one].deleted = True

    @rule(choice=CHOICE)
    def restore(self, choice: int) -> None:
        one = self.one(choice)
        memory = self.model.memories[one]
        is_allowed = not memory.expired and not memory.held and self.model.has_sources(one)
        if self.tried(is_allowed, lambda: cube_restore(actor=self.actor, cube_id=one)):
            memory.deleted = False

    @rule(choice=CHOICE)
    def purge(self, choice: int) -> None:
        one = self.one(choice)
        if self.tried(not self.model.memories[one].held, lambda: cube_purge(actor=self.actor, cube_id=one)):
            del self.model.memories[one]

    @invariant()
    def rows_are_as_modelled(self) -> None:
        with acting(self.actor):
            ids = list(self.model.memories)  # earlier lives are stored beside this one
            cubes = {cube.id: cube for cube in Cube.objects.select_related("namespace").filter(id__in=ids)}
            versions = CubeVersion.objects.filter(cube_id__in=ids).order_by("number")
            transitions = StateTransition.objects.filter(cube_id__in=ids).order_by("step")
            numbers: dict[UUID, list[int]] = {}
            for cube_id, number in versions.values_list("cube_id", "number"):
                numbers.setdefault(cube_id, []).append(number)
            steps: dict[UUID, list[int]] = {}
            for cube_id, step in transitions.values_list("cube_id", "step"):
                steps.setdefault(cube_id, []).append(step)
        for one, memory in self.model.memories.items():
            cube = cubes[one]
            found = (cube.state, cube.version, cube.deleted_at is not None, cube.namespace.path)
            assert found == (memory.state, memory.version, memory.deleted, memory.place)
            assert numbers[one] == list(range(1, memory.version + 1))
            assert steps.get(one, []) == list(range(1, memory.steps + 1))


class NothingHappens(Life):
    """As if the product acknowledged each call and did nothing."""

    def tried(self, is_allowed: bool, act: Callable[[], object]) -> bool:
        return is_allowed


class HoldsBindNothing(Life):
    """As if the product had to change what is held."""

    def __init__(self) -> None:
        super().__init__()
        self.model.is_free = self.model.is_readable  # type: ignore[method-assign]


def lives(machine: type[Life], world: World, examples: int) -> None:
    class LifeOfAlice(machine):  # type: ignore[valid-type,misc]
        actor = world.alice.actor

    chosen = settings(
        max_examples=examples,
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    run_state_machine_as_test(LifeOfAlice, settings=chosen)


def test_random_lives_are_as_modelled(world: World, full_size: bool) -> None:
    lives(Life, world, LIVES_IN_FULL if full_size else LIVES)


@pytest.mark.parametrize("machine", [NothingHappens, HoldsBindNothing])
def test_product_that_is_not_as_modelled_shows(world: World, machine: type[Life]) -> None:
    with pytest.raises((AssertionError, DatabaseError, DomainError)):
        lives(machine, world, 5 * LIVES)
