"""The lineage of a memory as boxes and lines, drawn on the server."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from vault.cubes.selectors import CubeView
from vault.provenance.selectors import Lineage
from vault.web.labels import make_labels
from vault.web.memory_rows import layer_class

WIDTH, BOX, HEIGHT, GAP, TOP = 800, 200, 48, 12, 28
LEFT, MIDDLE, RIGHT = 8, 308, 592
LONGEST_TITLE = 26  # characters that fit a box


@dataclass(frozen=True)
class Node:
    """One memory as a box whose top left corner is at x, y."""

    memory_id: UUID
    title: str
    below: str
    layer: str
    x: int
    y: int

    @property
    def text_x(self) -> int:
        return self.x + 14

    @property
    def title_y(self) -> int:
        return self.y + 20

    @property
    def below_y(self) -> int:
        return self.y + 37

    @property
    def edge_y(self) -> int:
        return self.y + 12


@dataclass(frozen=True)
class Drawing:
    width: int
    height: int
    own: Node
    sources: tuple[Node, ...]
    derived: tuple[Node, ...]
    paths: tuple[str, ...]


def lineage_draw(view: CubeView, lineage: Lineage) -> Drawing:
    rows = max(len(lineage.sources), len(lineage.derived), 1)
    height = TOP + rows * (HEIGHT + GAP) + GAP
    own = _make_node(view, MIDDLE, (height + TOP) // 2 - HEIGHT // 2)
    sources, derived = _make_column(lineage.sources, LEFT, height), _make_column(lineage.derived, RIGHT, height)
    paths = [_draw_path(source.x + BOX, source, own.x, own) for source in sources]
    paths += [_draw_path(own.x + BOX - 16, own, node.x, node) for node in derived]
    return Drawing(WIDTH, height, own, sources, derived, tuple(paths))


def _make_column(views: Sequence[CubeView], x: int, height: int) -> tuple[Node, ...]:
    used = len(views) * (HEIGHT + GAP) - GAP
    start = TOP + (height - TOP - used) // 2
    return tuple(_make_node(view, x, start + index * (HEIGHT + GAP)) for index, view in enumerate(views))


def _make_node(view: CubeView, x: int, y: int) -> Node:
    text = " ".join((view.words.title or view.words.content).split())
    title = text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}…"
    labels = make_labels(view.cube)
    below = f"{labels.semantic_type} · {labels.short_layer}"
    return Node(view.cube.id, title or str(view.cube.id)[:8], below, layer_class(view.cube.layer), x, y)


def _draw_path(x1: int, first: Node, x2: int, other: Node) -> str:
    y1, y2, middle = first.y + HEIGHT // 2, other.y + HEIGHT // 2, (x1 + x2) // 2
    return f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
