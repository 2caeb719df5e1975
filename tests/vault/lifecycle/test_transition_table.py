"""Every pair of states, by every way to change a state: one row where it is legal, a refusal and no row where not."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.db.models.functions import Now

from governance.actor import Actor, system_actor
from governance.database import acting
from governance.errors import Conflict, DomainError, IllegalTransition, NotFound
from governance.ids import uuid7
from governance.jobs.kinds import JobRun
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.lifecycle.fusion import cube_split, cubes_fuse, fusion_undo
from vault.lifecycle.renewal import cube_renew
from vault.lifecycle.rules import legal_states
from vault.lifecycle.services import cube_transition
from vault.lifecycle.sweep import lifecycle_sweep
from vault.models import Cube, StateTransition
from vault.vocabulary import State

G, A, M, X, E = State.GENERATED, State.ACTIVATED, State.MERGED, State.ARCHIVED, State.EXPIRED
LATER = datetime(2099, 1, 31, tzinfo=UTC)
WHY = "A test asks for it."
SPLIT = ["It nests.", "It leaves."]
# The ways to bring a new memory to a state. A merged one was generated or activated before, an expired one anything.
LIVES: dict[str, tuple[State, ...]] = {
    "generated": (G,),
    "activated": (G, A),
    "merged, generated before": (G, M),
    "merged, activated before": (G, A, M),
    "archived": (G, X),
    "archived, merged before": (G, M, X),
    "expired, generated before": (G, E),
    "expired, activated before": (G, A, E),
    "expired, merged before": (G, M, E),
    "expired, archived before": (G, X, E),
}


@dataclass(frozen=True)
class Lived:
    world: World
    cube_id: UUID

    @property
    def actor(self) -> Actor:
        return self.world.alice.actor

    def step(self, to: State) -> None:
        if to is M:
            cube_split(actor=self.actor, cube_id=self.cube_id, parts=SPLIT, reason=WHY)
        elif to is E:
            with acting(self.actor):
                Cube.objects.filter(id=self.cube_id).update(expires_at=Now())
            sweep(self.world)
        else:
            cube_transition(actor=self.actor, cube_id=self.cube_id, to=to, reason=WHY)

    def state(self) -> State:
        with acting(self.actor):
            return State(Cube.objects.get(id=self.cube_id).state)

    def rows(self) -> list[StateTransition]:
        with acting(self.actor):
            return list(StateTransition.objects.filter(cube_id=self.cube_id).order_by("step"))


@pytest.fixture
def live(world: World) -> Callable[[tuple[State, ...]], Lived]:
    """Make a memory that went through these states."""

    def make(states: tuple[State, ...]) -> Lived:
        draft = CubeDraft("The heron nests. It leaves.", namespace="/team", allow_duplicates=True)
        lived = Lived(world, cubes_add(actor=world.alice.actor, drafts=[draft])[0].cube.id)
        for to in states[1:]:
            lived.step(to)
        assert lived.state() is states[-1]
        return lived

    return make


def sweep(world: World) -> UUID:
    """One step of a sweep that archives nothing; the id of its job."""
    system = system_actor(tenant_id=world.acme.id, request_id="test")
    chosen = {"archive": False, "purge": False}
    run = JobRun(uuid7(), system, system, chosen, {}, 0, None, None, {}, lambda done, total: None)
    write = lifecycle_sweep(run)
    assert callable(write)
    with acting(system):
        write()
    return run.job_id


@each_case("name", LIVES)
def test_request_over_rest_is_one_row_or_409_that_names_the_legal_states(
    alice: Contract, live: Callable[[tuple[State, ...]], Lived], name: str
) -> None:
    for to in State:
        lived = live(LIVES[name])
        before, state = lived.rows(), lived.state()
        reply = alice.post(f"memories/{lived.cube_id}/transition/", {"to": to, "reason": WHY})
        if state is E:
            assert reply.status == 404  # unreadable at once
        elif to in legal_states(state):
            assert (reply.status, reply.json["state"]) == (200, to)
            *_, row = lived.rows()
            assert (row.step, row.from_state, row.to_state, row.reason) == (len(before) + 1, state, to, WHY)
            assert (row.principal_kind, row.principal_id, row.job_id) == ("api_key", lived.world.alice.key.id, None)
            continue
        else:
            assert (reply.status, reply.code) == (409, "illegal_transition")
            named = " or ".join(legal_states(state)) or "no other state"
            assert reply.json["detail"] == f"From {state} a memory can go to {named}, not to {to}."
        assert (lived.state(), len(lived.rows())) == (state, len(before))


def split(lived: Lived) -> None:
    cube_split(actor=lived.actor, cube_id=lived.cube_id, parts=SPLIT, reason=WHY)


def fuse(lived: Lived) -> None:
    draft = CubeDraft("The heron wades.", namespace="/team", allow_duplicates=True)
    twin = cubes_add(actor=lived.actor, drafts=[draft])[0].cube.id
    cubes_fuse(actor=lived.actor, cube_ids=[lived.cube_id, twin], reason=WHY)


def undo(lived: Lived) -> None:
    fusion_undo(actor=lived.actor, cube_id=lived.cube_id)


def renew(lived: Lived) -> None:
    cube_renew(actor=lived.actor, cube_id=lived.cube_id, expires_at=LATER)


WAYS: dict[Callable[[Lived], None], dict[str, State]] = {
    split: dict.fromkeys(("generated", "activated"), M),
    fuse: dict.fromkeys(("generated", "activated"), M),
    undo: {"merged, generated before": G, "merged, activated before": A},
    renew: {name: states[-2] for name, states in LIVES.items() if states[-1] is E},
}


@each_case("way", WAYS, ids=lambda way: way.__name__)
@each_case("name", LIVES)
def test_operation_takes_only_its_own_steps(
    live: Callable[[tuple[State, ...]], Lived], name: str, way: Callable[[Lived], None]
) -> None:
    lived = live(LIVES[name])
    before, state = lived.rows(), lived.state()
    to = WAYS[way].get(name)
    if to is None:
        with pytest.raises(DomainError) as refusal:
            way(lived)
        assert isinstance(refusal.value, NotFound if state is E or way is renew else Conflict)
        assert isinstance(refusal.value, IllegalTransition) or way in {undo, renew} or state is E
        assert (lived.state(), len(lived.rows())) == (state, len(before))
        return
    way(lived)
    *_, row = lived.rows()
    assert (row.step, row.from_state, row.to_state) == (len(before) + 1, state, to)
    assert (row.principal_kind, row.principal_id) == ("member", lived.actor.member_id)
    assert lived.state() is to


@each_case("name", LIVES)
def test_expiry_ends_every_state_once_in_the_name_of_its_job(
    live: Callable[[tuple[State, ...]], Lived], name: str
) -> None:
    lived = live(LIVES[name])
    before, state = lived.rows(), lived.state()
    with acting(lived.actor):
        Cube.objects.filter(id=lived.cube_id).update(expires_at=Now())
    job_id = sweep(lived.world)
    sweep(lived.world)
    assert lived.state() is E
    if state is E:
        assert len(lived.rows()) == len(before)
        return
    *_, row = lived.rows()
    assert (row.step, row.from_state, row.to_state) == (len(before) + 1, state, E)
    assert (row.principal_kind, row.job_id) == ("system", job_id)
    assert row.reason.startswith("Expired because its time ended on ")
