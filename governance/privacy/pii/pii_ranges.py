"""Ranges of a text that hold personal data: the place and the matched rule, never the value."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from governance.vocabulary import PiiKind

# Of two spans of equal length, the one with the stronger proof wins.
PROOF = {
    kind: rank
    for rank, kind in enumerate(
        (
            PiiKind.NATIONAL_ID,
            PiiKind.IBAN,
            PiiKind.EMAIL,
            PiiKind.CARD,
            PiiKind.PHONE,
            PiiKind.NETWORK_ADDRESS,
            PiiKind.SECRET,
            PiiKind.UNCHECKED,
        )
    )
}


@dataclass(frozen=True)
class Span:
    """The range text[start:end], in code points. `rule`: the rule that matched, as in `card:luhn`."""

    kind: PiiKind
    start: int
    end: int
    rule: str


def merge_overlaps(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans in order, without overlaps: secrets win over spans inside them, then longer ones win.

    So a card number inside a longer phone number is dropped, and a mail address inside a password too.
    """
    starts: list[int] = []
    taken: list[Span] = []
    for span in sorted(
        spans, key=lambda span: (span.kind is not PiiKind.SECRET, span.start - span.end, PROOF[span.kind])
    ):
        place = bisect_right(starts, span.start)
        free_before = place == 0 or taken[place - 1].end <= span.start
        free_after = place == len(taken) or taken[place].start >= span.end
        if free_before and free_after:
            starts.insert(place, span.start)
            taken.insert(place, span)
    return tuple(taken)


def placeholder(kind: PiiKind) -> str:
    """Return the text that replaces a value in redacted texts: the same in every language, to be searchable."""
    return f"[{kind}]"


def redact(text: str, spans: Sequence[Span]) -> str:
    """Return `text` with placeholders for `spans`, which must not overlap."""
    return "".join(_pieces(text, spans))


def _pieces(text: str, spans: Sequence[Span]) -> Iterator[str]:
    at = 0
    for span in spans:
        yield text[at : span.start]
        yield placeholder(span.kind)
        at = span.end
    yield text[at:]
