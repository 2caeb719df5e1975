"""Tests of the legal steps of a memory and their causes: the whole table."""

from tests.harness.cases import each_case
from vault.lifecycle.rules import STEPS, Cause, is_legal, legal_states
from vault.vocabulary import State

G, A, M, X, E = State.GENERATED, State.ACTIVATED, State.MERGED, State.ARCHIVED, State.EXPIRED
LEGAL = {
    (G, A): Cause.REQUEST,
    (X, A): Cause.REQUEST,
    (G, X): Cause.REQUEST,
    (A, X): Cause.REQUEST,
    (M, X): Cause.REQUEST,
    (G, M): Cause.FUSION,
    (A, M): Cause.FUSION,
    (M, G): Cause.UNDO_OF_FUSION,
    (M, A): Cause.UNDO_OF_FUSION,
    **{(state, E): Cause.EXPIRY for state in (G, A, M, X)},
    **{(E, state): Cause.RESTORE for state in (G, A, M, X)},
}


@each_case("to", list(State))
@each_case("state", list(State))
def test_step_is_legal_for_one_cause(state: State, to: State) -> None:
    causes = [cause for cause in Cause if is_legal(state, to, cause)]
    assert causes == ([LEGAL[state, to]] if (state, to) in LEGAL else [])


def test_every_state_has_its_steps() -> None:
    assert set(STEPS) == set(State)


def test_legal_states_come_in_the_order_of_a_life() -> None:
    assert legal_states(State.GENERATED) == (State.ACTIVATED, State.ARCHIVED)
    assert legal_states(State.ARCHIVED) == (State.ACTIVATED,)
    assert legal_states(State.EXPIRED) == ()
