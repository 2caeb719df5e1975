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
from vault.content.drafts import CubeChanges, CubeDraft
from vault.cubes.moves_and_rollbacks import cube_move, cube_rollback
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

    def is_readable(self, u_u_i_d: UUID) -> bool:
        found = self.memories.get(u_u_i_d)
        if found is None or found.deleted or found.expired:
            return False
        return self.has_sources(u_u_i_d)

    def has_sources(self, u_u_i_d: UUID) -> bool:
        sources = [self.memories.get(source) for source in self.memories[u_u_i_d].sources]
        return all(source is not None and not source.deleted and not source.expired for source in sources)

    def is_free(self, u_u_i_d: UUID) -> bool:
        return self.is_readable(u_u_i_d) and not self.memories[u_u_i_d].held

    def made(self, result: UUID, parents: tuple[UUID, ...]) -> None:
        behind = frozenset(parents).union(*(self.memories[parent].sources for parent in parents))
        self.memories[result] = Modelled(place=self.memories[parents[0]].place, sources=behind)

    def merge(self, parents: tuple[UUID, ...], results: tuple[UUID, ...]) -> None:
        for result in results:
            self.made(result, parents)
        for parent in parents:
            memory = self.memories[parent]
            memory.before_merge, memory.state, memory.steps = memory.state, State.MERGED, memory.steps + 1
        self.groups.append(Group(parents, results))


class Life(RuleBasedStateMachine):
    actor: Actor

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    def pick_memory(self, choice: int) -> UUID:
        ids = sorted(self.model.memories)
        assume(ids)
        return ids[choice % len(ids)]

    def try_action(self, is_allowed: bool, act: Callable[[], object]) -> bool:
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
        cube_id = self.pick_memory(choice)
        memory, changes = self.model.memories[cube_id], CubeChanges(title=f"No. {choice}")
        expected = {memory.version}
        if self.try_action(
            self.model.is_free(cube_id),
            lambda: cube_update(actor=self.actor, cube_id=cube_id, expected_versions=expected, changes=changes),
        ):
            memory.version += 1

    @rule(choice=CHOICE)
    def edit_another_version(self, choice: int) -> None:
        cube_id, changes = self.pick_memory(choice), CubeChanges(title="Never")
        expected = {self.model.memories[cube_id].version + 1}
        self.try_action(
            False, lambda: cube_update(actor=self.actor, cube_id=cube_id, expected_versions=expected, changes=changes)
        )

    @rule(choice=CHOICE)
    def roll_back(self, choice: int) -> None:
        cube_id = self.pick_memory(choice)
        if self.try_action(
            self.model.is_free(cube_id), lambda: cube_rollback(actor=self.actor, cube_id=cube_id, number=1)
        ):
            self.model.memories[cube_id].version += 1

    @rule(choice=CHOICE)
    def move(self, choice: int) -> None:
        cube_id, place = self.pick_memory(choice), PLACES[choice % 2]
        if self.try_action(
            self.model.is_free(cube_id), lambda: cube_move(actor=self.actor, cube_id=cube_id, namespace=place)
        ):
            self.model.memories[cube_id].place = place
            self.model.memories[cube_id].version += 1

    @rule(choice=CHOICE, to=st.sampled_from(State))
    def transition(self, choice: int, to: State) -> None:
        cube_id = self.pick_memory(choice)
        memory = self.model.memories[cube_id]
        is_allowed = self.model.is_free(cube_id) and is_legal(memory.state, to)
        if self.try_action(is_allowed, lambda: cube_transition(actor=self.actor, cube_id=cube_id, to=to)):
            memory.state, memory.steps = to, memory.steps + 1

    @rule(first=CHOICE, second=CHOICE)
    def fuse(self, first: int, second: int) -> None:
        pair = (self.pick_memory(first), self.pick_memory(second))
        found = [self.model.memories[item] for item in pair]
        is_allowed = (
            pair[0] != pair[1]
            and all(self.model.is_free(item) for item in pair)
            and all(memory.state in SEARCHABLE for memory in found)
            and found[0].place == found[1].place
        )
        made: list[Cube] = []
        if self.try_action(is_allowed, lambda: made.append(cubes_fuse(actor=self.actor, cube_ids=pair))):
            self.model.merge(pair, (made[0].id,))

    @rule(choice=CHOICE)
    def split(self, choice: int) -> None:
        cube_id, made = self.pick_memory(choice), list[Cube]()
        is_allowed = self.model.is_free(cube_id) and self.model.memories[cube_id].state in SEARCHABLE
        parts = ["It nests.", "It leaves."]
        if self.try_action(is_allowed, lambda: made.extend(cube_split(actor=self.actor, cube_id=cube_id, parts=parts))):
            self.model.merge((cube_id,), tuple(cube.id for cube in made))

    @rule(choice=CHOICE)
    def undo_a_fusion(self, choice: int) -> None:
        assume(self.model.groups)
        group = self.model.groups[choice % len(self.model.groups)]
        concerned = (*group.parents, *group.results)
        assume(all(item in self.model.memories for item in concerned))
        memories = self.model.memories
        assume(memories[group.results[0]].state is not State.MERGED)  # its call would undo the later fusion
        is_whole = all(memories[parent].state is State.MERGED for parent in group.parents)
        is_whole = is_whole and all(self.model.is_free(item) for item in concerned)
        assume(is_whole or not self.model.is_free(group.results[0]))
        is_allowed = is_whole and all(memories[result].state is not State.MERGED for result in group.results)
        if self.try_action(is_allowed, lambda: fusion_undo(actor=self.actor, cube_id=group.results[0])):
            self.model.groups.remove(group)
            for parent in group.parents:
                memories[parent].state, memories[parent].steps = (
                    memories[parent].before_merge,
                    memories[parent].steps + 1,
                )
            for result in group.results:
                memories[result].deleted = True

    @rule(choice=CHOICE)
    def freeze(self, choice: int) -> None:
        cube_id = self.pick_memory(choice)
        assume(not self.model.memories[cube_id].held)
        if self.try_action(
            self.model.is_readable(cube_id), lambda: cube_freeze(actor=self.actor, cube_id=cube_id, reason="An audit.")
        ):
            self.model.memories[cube_id].held = True

    @rule(choice=CHOICE)
    def unfreeze(self, choice: int) -> None:
        cube_id = self.pick_memory(choice)
        assume(self.model.memories[cube_id].held and self.model.is_readable(cube_id))
        cube_unfreeze(actor=self.actor, cube_id=cube_id)
        self.model.memories[cube_id].held = False

    @rule(choice=CHOICE)
    def expire(self, choice: int) -> None:
        """Its time ends, and a sweep marks it."""
        cube_id = self.pick_memory(choice)
        assume(self.model.is_free(cube_id))
        memory = self.model.memories[cube_id]
        with acting(self.actor):
            Cube.objects.filter(id=cube_id).update(expires_at=Now())
            cube = Cube.objects.select_related("namespace").get(id=cube_id)
            steps_write(self.actor, [PlannedStep(cube, State.EXPIRED)])
        memory.before_end, memory.state, memory.expired = memory.state, State.EXPIRED, True
        memory.steps += 1

    @rule(choice=CHOICE)
    def renew(self, choice: int) -> None:
        cube_id = self.pick_memory(choice)
        memory = self.model.memories[cube_id]
        is_allowed = memory.expired and not memory.deleted and not memory.held and self.model.has_sources(cube_id)
        if self.try_action(is_allowed, lambda: cube_renew(actor=self.actor, cube_id=cube_id, expires_at=LATER)):
            memory.state, memory.expired = memory.before_end, False
            memory.version, memory.steps = memory.version + 1, memory.steps + 1

    @rule(choice=CHOICE)
    def delete(self, choice: int) -> None:
        cube_id = self.pick_memory(choice)
        if self.try_action(self.model.is_free(cube_id), lambda: cube_delete(actor=self.actor, cube_id=cube_id)):
            self.model.memories[cube_id].deleted = True

    @rule(choice=CHOICE)
    def restore(self, choice: int) -> None:
        cube_id = self.pick_memory(choice)
        memory = self.model.memories[cube_id]
        is_allowed = not memory.expired and not memory.held and self.model.has_sources(cube_id)
        if self.try_action(is_allowed, lambda: cube_restore(actor=self.actor, cube_id=cube_id)):
            memory.deleted = False

    @rule(choice=CHOICE)
    def purge(self, choice: int) -> None:
        cube_id = self.pick_memory(choice)
        if self.try_action(
            not self.model.memories[cube_id].held, lambda: cube_purge(actor=self.actor, cube_id=cube_id)
        ):
            del self.model.memories[cube_id]

    @invariant()
    def check_rows(self) -> None:
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
        for key, memory in self.model.memories.items():
            cube = cubes[key]
            found = (cube.state, cube.version, cube.deleted_at is not None, cube.namespace.path)
            assert found == (memory.state, memory.version, memory.deleted, memory.place)
            assert numbers[key] == list(range(1, memory.version + 1))
            assert steps.get(key, []) == list(range(1, memory.steps + 1))


class NothingHappens(Life):
    """As if the product acknowledged each call and did nothing."""

    def try_action(self, is_allowed: bool, act: Callable[[], object]) -> bool:
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


@pytest.mark.parametrize("machine", [NothingHappens, pytest.param(HoldsBindNothing, marks=pytest.mark.full)])
def test_product_that_is_not_as_modelled_shows(world: World, machine: type[Life]) -> None:
    with pytest.raises((AssertionError, DatabaseError, DomainError)):
        lives(machine, world, 5 * LIVES)
