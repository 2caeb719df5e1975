"""The growth of calls by size."""

import pytest

from benchmarks.scale import measure_exponent, scale_table


@pytest.mark.parametrize(("power", "factor"), [(0.0, 7.0), (0.5, 2.0), (1.0, 0.01)])
def test_exponent_is_the_power_by_which_a_time_grows(power: float, factor: float) -> None:
    times = {size: factor * size**power for size in (1_000, 10_000, 1_000_000)}
    assert measure_exponent(times) == pytest.approx(power, abs=1e-9)


def test_table_has_a_column_for_each_size_and_the_exponent() -> None:
    grown = {"sizes": {"1000": {"add ms": 2.0}, "10000": {"add ms": 4.0}}, "exponents": {"add ms": 0.3}}
    table = scale_table({"memories of a tenant": grown, "tenants": {"sizes": {}, "exponents": {}}})
    assert table.splitlines()[0] == "| memories of a tenant | 1000 | 10000 | exponent |"
    assert table.splitlines()[2] == "| add ms | 2.0 | 4.0 | 0.3 |"
