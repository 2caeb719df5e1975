"""Markers of an answer and the chips that they become."""

from uuid import UUID

from vault.chat.selectors import Citation
from vault.web.answers import Piece, pieces

ONE = Citation(memory_id=UUID(int=1), marker=1, score=0.9)
TWO = Citation(memory_id=UUID(int=2), marker=2, score=0.5)


def test_a_marker_of_a_citation_becomes_a_chip_in_its_place() -> None:
    found = list(pieces("By train [1], she said [2][1].", (ONE, TWO)))
    assert found == [
        Piece("By train "),
        Piece("[1]", ONE),
        Piece(", she said "),
        Piece("[2]", TWO),
        Piece("[1]", ONE),
        Piece("."),
    ]


def test_a_marker_of_no_citation_stays_text() -> None:
    assert list(pieces("See [3] and [0] and [x].", (ONE,))) == [Piece("See [3] and [0] and [x].")]


def test_nothing_is_lost_or_added() -> None:
    answer = "  [1]\n\n[2] [22] [ 1] "
    assert "".join(piece.text for piece in pieces(answer, (ONE, TWO))) == answer
