"""Charts: shapes that stay in their box."""

import re

import pytest

from governance.web.charts import chart_of, spark_of


def test_a_spark_fills_its_box_and_no_more() -> None:
    spark = spark_of([0, 5, 10])
    assert spark.line == "M0.0 32.0L50.0 17.0L100.0 2.0"
    assert spark.area == f"{spark.line}L100 32L0 32Z"
    assert spark_of([1]).line == ""
    assert spark_of([0, 0]).line == "M0.0 32.0L100.0 32.0"


def test_series_lie_on_one_another() -> None:
    chart = chart_of([("fill-long", [1, 3]), ("fill-mid", [1, 1])])
    assert chart.marks == (5.0, 2.5, 0.0)
    assert chart.bands[0].line == "M0.0 80.0L100.0 40.0"
    assert chart.bands[1].line == "M0.0 60.0L100.0 20.0"
    assert chart.bands[1].area == "M0.0 60.0L100.0 20.0L100.0 40.0L0.0 80.0Z"
    assert chart_of([]).bands == ()


@pytest.mark.parametrize("values", [[0.0, 0.0], [1e9, 3.0, 7.5], [0.2, 0.1]])
def test_no_point_lies_outside(values: list[float]) -> None:
    chart = chart_of([("fill-ok", values)])
    heights = [float(height) for height in re.findall(r"[ML][\d.]+ (-?[\d.]+)", chart.bands[0].line)]
    assert all(0 <= height <= 100 for height in heights)
