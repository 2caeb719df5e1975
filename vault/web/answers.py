"""An answer as a page shows it: plain text, and chips where it cites a memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from vault.chat.rules import MARKER
from vault.chat.selectors import Citation, TurnView
from vault.vocabulary import TurnEnd


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
    def interrupted(self) -> bool:
        return self.turn.end is TurnEnd.INTERRUPTED


def shown_turn(turn: TurnView) -> ShownTurn:
    return ShownTurn(turn=turn, pieces=tuple(pieces(turn.answer, turn.citations)))


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
