"""Objects that a job cannot change: tried again, then parked, and run again by a person."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault.lifecycle.attempts import ATTEMPTS, ids_to_retry, plan_next_step

A, B = UUID(int=1), UUID(int=2)


def test_failed_objects_are_retried_behind_all_others_before_the_job_fails() -> None:
    state, parked = plan_next_step({}, A, {A: "conflict"})
    assert (state, parked, ids_to_retry(state or {})) == ({"after": str(A), "failed": [str(A)]}, {}, None)
    state, parked = plan_next_step(state or {}, None, {B: "conflict"})
    assert (ids_to_retry(state or {}), parked) == ([A, B], {})
    for _ in range(ATTEMPTS - 2):
        state, parked = plan_next_step(state or {}, None, {B: "conflict"})
        assert (ids_to_retry(state or {}), parked) == ([B], {})
    state, parked = plan_next_step(state or {}, None, {B: "held"})
    assert (ids_to_retry(state or {}), parked) == ([B], {B: "held"})
    assert plan_next_step(state or {}, None, {}) == (None, {})


@given(st.lists(st.booleans(), max_size=5))
def test_job_without_failures_ends_behind_the_last_object(pages: list[bool]) -> None:
    state: dict[str, object] | None = {}
    for _ in pages:
        state, parked = plan_next_step(state or {}, A, {})
        assert (state, parked) == ({"after": str(A)}, {})
    assert plan_next_step(state or {}, None, {}) == (None, {})


@pytest.mark.parametrize("state", [{}, {"after": str(A)}])
def test_first_attempt_names_no_objects_to_try_again(state: dict[str, str]) -> None:
    assert ids_to_retry(state) is None
