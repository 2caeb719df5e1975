"""Every shape on every surface, and the page that shows the table."""

from pathlib import Path

import pytest

from tests.conformance.shapes import NONE, SHAPES, Shape
from tests.conformance.surfaces import SURFACES, Surface
from tests.factories import World
from tests.harness.servers import ROOT

PAGE = ROOT / "docs" / "conformance.md"
HEAD = """\
# What clients send

After this page you know what each surface makes of what clients of other products send. A source with a number is a
public issue of the project where the shape was reported; the others are published code or documentation.
The table is generated from `tests/conformance/shapes.py`, and every cell is tested. A surface has no
argument for some shapes (–). Where it has a choice, the messages are sent without inference, but for the last two rows.

"""


def write_page() -> str:
    names = [surface.name for surface in SURFACES]
    lines = [f"| shape | source | {' | '.join(names)} |", f"| --- | --- |{' --- |' * len(names)}"]
    for shape in SHAPES:
        cells = " | ".join(shape.expect(name) for name in names)
        lines.append(f"| {shape.name} | {shape.source} | {cells} |")
    return HEAD + "\n".join(lines) + "\n"


@pytest.mark.sampled(20)
@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.name)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_shape_becomes_what_the_table_says(world: World, shape: Shape, surface: Surface) -> None:
    expected = shape.expect(surface.name)
    assert expected == NONE or shape.act(world, surface) == expected


def test_page_shows_the_table() -> None:
    assert Path(PAGE).read_text() == write_page()
