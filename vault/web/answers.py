"""An answer as a page shows it: quotes as text, a model's words as Markdown, and chips where it cites a memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils.safestring import mark_safe

from vault.chat.selectors import Citation, TurnView
from vault.cubes.passages import MARKER
from vault.vocabulary import TurnEnd
from vault.web.markdown import CITE, markdown_html


@dataclass(frozen=True)
class Piece:
    """Some text of an answer; with a citation it is that citation's marker."""

    text: str = field(repr=False)
    citation: Citation | None = None


@dataclass(frozen=True)
class ShownTurn:
    turn: TurnView
    pieces: tuple[Piece, ...]

    @property
    def quoted(self) -> bool:
        """Whether it is made of sentences of memories, and of nothing else."""
        return self.turn.extractive and bool(self.turn.citations)

    @property
    def interrupted(self) -> bool:
        return self.turn.end is TurnEnd.INTERRUPTED


def shown_turn(turn: TurnView) -> ShownTurn:
    cut = pieces if turn.extractive else pieces_of_markdown
    available = tuple(one for one in turn.citations if one.available)
    return ShownTurn(turn=turn, pieces=tuple(cut(turn.answer or "", available)))


def pieces(answer: str, citations: tuple[Citation, ...]) -> Iterator[Piece]:
    """`answer`, cut at the markers of `citations`; a marker that belongs to none stays text."""
    known = {citation.marker: citation for citation in citations}
    start = 0
    for match in MARKER.finditer(answer):
        citation = known.get(int(match[1]))
        if citation is None:
            continue
        if match.start() > start:
            yield Piece(answer[start : match.start()])
        yield Piece(match[0], citation)
        start = match.end()
    if start < len(answer):
        yield Piece(answer[start:])


def pieces_of_markdown(answer: str, citations: tuple[Citation, ...]) -> Iterator[Piece]:
    """The same of a model's answer, whose text is sanitised HTML; a marker within code stays text."""
    known = {citation.marker: citation for citation in citations}
    for index, part in enumerate(CITE.split(markdown_html(answer, known))):
        if index % 2:
            yield Piece(f"[{part}]", known[int(part)])
        elif part:
            yield Piece(mark_safe(part))  # nh3 has cleaned it
