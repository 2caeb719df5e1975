"""The harness chooses tests as CONTRIBUTING.md says, and reports every failed case."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.harness.cases import each_case
from tests.harness.selection import PARTS, part_of_full, rooms_above, sample_of_cases
from tests.harness.servers import ROOT


@each_case(("left", "right"), [(1, 1), pytest.param(2, 2, id="two")])
def test_case_has_its_values(left: int, right: int) -> None:
    assert left == right


@pytest.mark.parametrize(("cases", "failed"), [([1, 2, 3], 1), ([1, 3, 5], 3)])
def test_every_failed_case_is_reported_with_its_values(cases: Sequence[int], failed: int) -> None:
    @each_case("number", cases)
    def is_even_or_three(number: int) -> None:
        assert number % 2 == 0 or (number == 3 and failed == 1), number

    with pytest.raises((AssertionError, BaseExceptionGroup)) as found:
        is_even_or_three()
    failures = getattr(found.value, "exceptions", [found.value])
    assert len(failures) == failed
    assert "in the case {'number': 1}" in failures[0].__notes__


def test_cases_without_an_end_are_refused() -> None:
    with pytest.raises(AssertionError, match="no cases of number"):
        each_case("number", [])


def items(*names: str, marker: pytest.Mark | None = None) -> list[pytest.Item]:
    made = [SimpleNamespace(nodeid=name, get_closest_marker=lambda _: marker) for name in names]
    return cast("list[pytest.Item]", made)


def names_of(found: Any) -> list[str]:
    return [item.nodeid for item in found]


def test_every_test_left_out_is_in_just_one_part() -> None:
    left_out = items(*[f"tests/test_{number}.py::test_{case}" for number in range(9) for case in "ab"])
    parts = [names_of(part_of_full(left_out, part)) for part in range(1, PARTS + 1)]
    assert sorted(name for part in parts for name in part) == sorted(names_of(left_out))
    assert all(parts)


def test_sample_has_the_asked_number_of_cases_and_the_seed_draws_them() -> None:
    cases = items(*[f"tests/test_x.py::test_x[{number}]" for number in range(30)], marker=pytest.mark.sampled(4).mark)
    first, again, other = (names_of(sample_of_cases(cases, seed)) for seed in (1, 1, 2))
    assert len(first) == 4
    assert first == again != other


def test_rooms_above_are_those_of_higher_layers() -> None:
    above = rooms_above("vault/chat", ROOT)
    assert {("vault", "chat"), ("vault", "store"), ("vault", "api"), ("vault", "web")} <= above
    assert not {("vault", "reader"), ("vault", "cubes"), ("governance", "audit")} & above
    assert {("vault", "cubes"), ("governance", "accounts")} <= rooms_above("governance/audit", ROOT)
    with pytest.raises(pytest.UsageError, match="no room vault/nowhere"):
        rooms_above("vault/nowhere", ROOT)
