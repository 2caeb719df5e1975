"""Layout of names and memories as a graph: names on a spiral, memories next to the names that they contain. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations
from uuid import UUID

import numpy as np

from vault.cubes.selectors import CubeView
from vault.lexicon.entities import entities
from vault.listing.neighbourhood import Neighbourhood
from vault.vocabulary import MessageRole
from vault.web.memory_rows import layer_class

WIDTH, HEIGHT = 860, 560
MOST_NODES = 200  # of the picture; the rest is in the list
MOST_NAMES = 24
NAMELESS = frozenset(MessageRole)  # speakers of whom only their role is known
FEW_NAMES = 12
MOST_LABELLED = 16  # memories that bear their first words in the picture
GOLDEN = math.pi * (3 - math.sqrt(5))  # the angle at which a spiral never meets itself
LONGEST_LABEL = 22
ROUNDS = 20  # at most, of names that change places
LONGEST_READ = 2_000  # characters of each memory in which names are looked for: a picture has many memories


@dataclass(frozen=True)
class NameNode:
    """A name with its position. size: its radius; is_person: the name of a speaker; text_y: position of the label
    below."""

    name: str
    label: str
    count: int
    x: float
    y: float
    size: float
    is_person: bool
    is_on: bool

    @property
    def text_y(self) -> float:
        return round(self.y + self.size + 14, 1)

    @property
    def corner_x(self) -> float:
        return round(self.x - self.size, 1)

    @property
    def corner_y(self) -> float:
        return round(self.y - self.size, 1)

    @property
    def side(self) -> float:
        return round(2 * self.size, 1)


@dataclass(frozen=True)
class MemoryNode:
    id: UUID
    title: str
    layer: str
    x: float
    y: float
    is_on: bool
    label: str = ""

    @property
    def text_x(self) -> float:
        return round(self.x + (9 if self.is_left else -9), 1)

    @property
    def text_y(self) -> float:
        return round(self.y + 4, 1)

    @property
    def is_left(self) -> bool:
        """True if there is room for the label on the right."""
        return self.x < WIDTH - 150


@dataclass(frozen=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float
    is_on: bool


@dataclass(frozen=True)
class Graph:
    """The drawn graph. names_of: names in each memory, for the list; folded: names and memories that only the list
    shows."""

    names: tuple[NameNode, ...]
    memories: tuple[MemoryNode, ...]
    lines: tuple[Line, ...]
    names_of: Mapping[UUID, Sequence[str]]
    counts: Mapping[str, int]
    folded: int


def graph_draw(found: Neighbourhood, centre: str) -> Graph:
    names_of = {view.cube.id: _find_names(view) for view in found.views}
    counts = Counter(name for names in names_of.values() for name in names)
    speakers = {view.words.speaker.casefold() for view in found.views if view.words.speaker}
    topics = speakers | {tag.casefold() for view in found.views for tag in view.cube.tags}
    shown = _choose_names(counts, centre, topics, names_of)
    linked = ([*names_of.get(source_id, ()), *names_of.get(other, ())] for source_id, other, _ in found.links)
    places = place_names(shown, [*names_of.values(), *linked])
    on = centre.casefold().strip()
    most = max((counts[name] for name in shown), default=1)
    names = tuple(
        NameNode(
            name=name,
            label=shorten_label(name),
            count=counts[name],
            x=places[name][0],
            y=places[name][1],
            size=round(8 + 8 * math.sqrt(counts[name] / most), 1),
            is_person=name in speakers,
            is_on=name == on,
        )
        for name in shown
    )
    memories = _place_memories(found, MOST_NODES - len(names), names_of, places, on)
    lines = _connect_nodes(memories, names_of, places, found, on)
    folded = len(counts) - len(names) + len(found.views) - len(memories) + found.more
    return Graph(names, tuple(memories.values()), tuple(lines), names_of, counts, folded)


def _find_names(view: CubeView) -> list[str]:
    named = entities(f"{view.words.title}\n{view.words.content[:LONGEST_READ]}")
    speaker = view.words.speaker.casefold()
    tags = [tag.casefold() for tag in view.cube.tags]
    found = dict.fromkeys([speaker, *tags, *named])
    return [name for name in found if name and name not in NAMELESS]


def _choose_names(
    counts: Counter[str], centre: str, topics: AbstractSet[str], names_of: Mapping[UUID, Sequence[str]]
) -> list[str]:
    """Return the requested name first, then speakers, tags and names of several memories by their number; then names of
    memories that would else stand alone. topics: speakers and tags; other words may begin a sentence and name nothing.
    """
    ranked = [name for name, count in counts.most_common() if count > 1 or name in topics][:MOST_NAMES]
    alone = [names for names in names_of.values() if names and not set(names) & set(ranked)]
    ranked += list(dict.fromkeys(names[0] for names in alone))[: max(0, FEW_NAMES - len(ranked))]
    on = centre.casefold().strip()
    return [on, *(name for name in ranked if name != on)] if on in counts else ranked


def place_names(names: Sequence[str], groups: Sequence[Sequence[str]]) -> dict[str, tuple[float, float]]:
    """Return the positions of names on a spiral, those of a group (a memory, or two linked ones) near each other.

    The first name stays in the middle; of the others two change places as long as that makes the lines shorter.
    """
    spots = np.array([_spiral_position(at, len(names)) for at in range(len(names))]).reshape(-1, 2)
    at = {name: index for index, name in enumerate(names)}
    together = np.zeros((len(names), len(names)))
    for named in groups:
        for first, second in combinations([at[name] for name in named if name in at], 2):
            together[first, second] = together[second, first] = 1
    order = np.arange(len(names))  # the spot of each name
    distance = np.linalg.norm(spots[:, None] - spots[None], axis=2)
    for _ in range(ROUNDS):
        before = order.copy()
        for first, second in combinations(range(1, len(names)), 2):
            ties = together[first] - together[second]
            ties[[first, second]] = 0
            if ties @ (distance[order[second], order] - distance[order[first], order]) < 0:
                order[first], order[second] = order[second], order[first]
        if (order == before).all():
            break
    return {name: (float(spots[spot][0]), float(spots[spot][1])) for name, spot in zip(names, order, strict=True)}


def _spiral_position(at: int, of: int) -> tuple[float, float]:
    """Return the position of the node number `at`: 0 in the middle, the others on a spiral flattened to the box."""
    radius = math.sqrt(at / max(of - 1, 1)) if at else 0.0
    x = WIDTH / 2 + radius * (WIDTH / 2 - 70) * math.cos(at * GOLDEN)
    y = HEIGHT / 2 + radius * (HEIGHT / 2 - 50) * math.sin(at * GOLDEN)
    return round(x, 1), round(y, 1)


def _place_memories(
    found: Neighbourhood,
    limit: int,
    names_of: Mapping[UUID, Sequence[str]],
    places: Mapping[str, tuple[float, float]],
    on: str,
) -> dict[UUID, MemoryNode]:
    """Return up to `limit` memories: around the middle of their names, else beside a linked one; the nearest memory in
    any case, and all if no name is drawn. Other memories are in the list alone."""
    beside: defaultdict[tuple[float, float], int] = defaultdict(int)
    nodes: dict[UUID, MemoryNode] = {}
    linked = defaultdict(list)
    for source_id, other, _ in found.links:
        linked[source_id].append(other)
        linked[other].append(source_id)
    is_labelled = len(found.views) <= MOST_LABELLED
    for view in found.views:
        named = [places[name] for name in names_of[view.cube.id] if name in places]
        others = [(nodes[other].x, nodes[other].y) for other in linked[view.cube.id] if other in nodes]
        if len(nodes) == limit or (places and nodes and not named and not others):
            continue
        middle = _middle_point(named or others[:1] or [(WIDTH / 2, HEIGHT / 2)])
        turn = beside[middle]
        beside[middle] += 1
        reach = (12 if len(named) > 1 else 30) + 9 * math.sqrt(turn)
        angle = len(nodes) * GOLDEN
        x = min(max(middle[0] + reach * math.cos(angle), 8), WIDTH - 8)
        y = min(max(middle[1] + reach * math.sin(angle), 8), HEIGHT - 8)
        title = " ".join((view.words.title or view.words.content).split())[:80]
        nodes[view.cube.id] = MemoryNode(
            id=view.cube.id,
            title=title,
            layer=layer_class(view.cube.layer),
            x=round(x, 1),
            y=round(y, 1),
            is_on=on in names_of[view.cube.id],
            label=_clip_label(title) if is_labelled else "",
        )
    return nodes


def _middle_point(places: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return (
        round(sum(x for x, _ in places) / len(places), 1),
        round(sum(y for _, y in places) / len(places), 1),
    )


def _connect_nodes(
    memories: Mapping[UUID, MemoryNode],
    names_of: Mapping[UUID, Sequence[str]],
    places: Mapping[str, tuple[float, float]],
    found: Neighbourhood,
    on: str,
) -> list[Line]:
    lines = [
        Line(node.x, node.y, *places[name], is_on=name == on)
        for memory_id, node in memories.items()
        for name in names_of[memory_id]
        if name in places
    ]
    for source_id, other, _ in found.links:
        if source_id in memories and other in memories:
            lines.append(
                Line(memories[source_id].x, memories[source_id].y, memories[other].x, memories[other].y, is_on=False)
            )
    return lines


def shorten_label(name: str) -> str:
    return _clip_label(name.title() if name.isascii() else name)


def _clip_label(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
