"""Memories as rows of a list: marked search words, heat and layer as symbols, short times."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from vault.cubes.selectors import CubeView
from vault.listing.endings import Ending
from vault.listing.selectors import MemoryPage
from vault.retrieval.fusion import context_share
from vault.retrieval.selectors import Hit
from vault.vocabulary import Layer, Sensitivity
from vault.web.labels import ENDINGS, Labels, make_labels

SHOWN_CHARACTERS = 240  # of a row; two lines
BEFORE_HIT = 60  # characters shown before the first hit of a long text
HEAT_STEPS = (1.5, 3.0, 5.0, 7.0)
HEAT_FULL, BAR = 10.0, 40  # the heat of a full bar, and its width
LAYER_CLASSES = {Layer.SHORT_TERM: "short", Layer.MID_TERM: "mid", Layer.LONG_TERM: "long"}
WORDS = re.compile(r"[^\W_]+")
NO_ENDINGS: Mapping[UUID, Ending] = {}
CHINESE = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class TextPiece:
    text: str
    is_hit: bool = False


@dataclass(frozen=True)
class ScorePart:
    """One part of a score, as a rectangle of the bar. x, width: in percent; index: number of its colour."""

    index: int
    name: str
    value: float
    x: float
    width: float


def score_parts(score: float, named: Sequence[tuple[str, float]]) -> list[ScorePart]:
    """Return the parts of `score` (0..1) as a bar whose length is the score; parts of 0 are left out."""
    whole = sum(value for _, value in named) or 1.0
    parts: list[ScorePart] = []
    x = 0.0
    for index, (name, value) in enumerate(named, start=1):
        width = value / whole * score * 100
        if value:
            parts.append(ScorePart(index, name, value, round(x, 1), round(max(width - 0.8, 0.4), 1)))
        x += width
    return parts


@dataclass(frozen=True)
class Heat:
    """The heat of a memory as a bar. level: 1..5; width: of at most 40 units."""

    value: float
    level: int
    width: float

    @property
    def text(self) -> str:
        return f"{self.value:.1f}"

    @property
    def svg_width(self) -> str:
        """Return the width as an SVG attribute, without a localised decimal separator."""
        return str(self.width)


@dataclass(frozen=True)
class MemoryRow:
    view: CubeView
    labels: Labels
    layer: str
    pieces: tuple[TextPiece, ...]
    heat: Heat
    score: float | None = None
    parts: str = ""
    ending: Ending | None = None

    @property
    def state(self) -> str:
        return self.ending.kind if self.ending else self.view.cube.state

    @property
    def state_words(self) -> str:
        return str(ENDINGS[self.ending.kind]) if self.ending else self.labels.state

    @property
    def is_sensitive(self) -> bool:
        return self.view.cube.sensitivity in {Sensitivity.CONFIDENTIAL, Sensitivity.RESTRICTED}


def rows_make(page: MemoryPage, text: str, endings: Mapping[UUID, Ending] = NO_ENDINGS) -> list[MemoryRow]:
    """endings: of inactive memories, by their ids."""
    if page.hits:
        return [row_make(hit.view, text, hit) for hit in page.hits]
    return [row_make(view, text, ending=endings.get(view.cube.id)) for view in page.views]


def row_make(view: CubeView, text: str = "", hit: Hit | None = None, ending: Ending | None = None) -> MemoryRow:
    return MemoryRow(
        ending=ending,
        view=view,
        labels=make_labels(view.cube),
        layer=layer_class(view.cube.layer),
        pieces=excerpt_mark(view.words.content, text),
        heat=make_heat(view.heat),
        score=hit.score if hit else None,
        parts="-".join(f"{part:.3f}" for part in _score_values(hit)) if hit else "",
    )


def excerpt_mark(content: str, text: str) -> tuple[TextPiece, ...]:
    return tuple(hits_mark(_cut_excerpt(content, text), text))


def layer_class(layer: str) -> str:
    return LAYER_CLASSES[Layer(layer)]


def make_heat(value: float) -> Heat:
    level = 1 + sum(value >= step for step in HEAT_STEPS)
    return Heat(value, level, round(min(value / HEAT_FULL, 1.0) * BAR, 1))


def hits_mark(content: str, text: str) -> Iterator[TextPiece]:
    """Yield `content` cut at the words of `text`, ignoring case."""
    pattern = _compile_pattern(text)
    if pattern is None:
        yield TextPiece(content)
        return
    for index, part in enumerate(pattern.split(content)):
        if part:
            yield TextPiece(part, is_hit=index % 2 == 1)


@lru_cache(maxsize=256)
def _compile_pattern(text: str) -> re.Pattern[str] | None:
    words = _search_words(text)
    return re.compile(f"({'|'.join(map(re.escape, words))})", re.IGNORECASE) if words else None


def _search_words(text: str) -> list[str]:
    found = [word for word in WORDS.findall(text) if len(word) > 1 or CHINESE.match(word)]
    pairs = [word[at : at + 2] for word in found if CHINESE.search(word) for at in range(max(len(word) - 1, 1))]
    return sorted({*found, *pairs}, key=len, reverse=True)[:20]


def _first_hit(content: str, text: str) -> int:
    """Return the position of the first search word; -1 if there is none. One pattern of many words would take quadratic
    time."""
    lowered = content.lower()
    places = (lowered.find(word.lower()) for word in _search_words(text))
    return min((at for at in places if at >= 0), default=-1)


def _cut_excerpt(content: str, text: str) -> str:
    """Return the part of a long text around the first hit."""
    first = _first_hit(content, text)
    if first < SHOWN_CHARACTERS // 2:
        return content[:SHOWN_CHARACTERS] + ("…" if len(content) > SHOWN_CHARACTERS else "")
    start = first - BEFORE_HIT
    return f"…{content[start : start + SHOWN_CHARACTERS]}…"


def _score_values(hit: Hit) -> Sequence[float]:
    parts = hit.parts
    return [parts.lexical, parts.dense, context_share(parts), parts.heat, parts.trust]
