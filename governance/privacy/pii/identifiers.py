"""Ranges of a text about a person that tell who it is: personal data, and what only an anonymised text must lose."""

from collections.abc import Iterable
from dataclasses import dataclass

from governance.vocabulary import PersonalKind, PiiKind


@dataclass(frozen=True)
class Identifier:
    """The range text[start:end], in code points. rule: what found it, as in `name:known`."""

    kind: PiiKind | PersonalKind
    start: int
    end: int
    rule: str

    @property
    def placeholder(self) -> str:
        return f"[{self.kind}]"


def merge_identifiers(found: Iterable[Identifier]) -> list[Identifier]:
    """Return the ranges in order. Overlapping ones become one range with the kind of the longest: nothing stays."""
    merged: list[Identifier] = []
    longest = 0
    for each in sorted(found, key=lambda each: (each.start, -each.end)):
        last = merged[-1] if merged else None
        if last is None or each.start >= last.end:
            merged.append(each)
            longest = each.end - each.start
            continue
        size = each.end - each.start
        kind, rule = (each.kind, each.rule) if size > longest else (last.kind, last.rule)
        longest = max(longest, size)
        merged[-1] = Identifier(kind, last.start, max(last.end, each.end), rule)
    return merged


def replace_identifiers(text: str, found: Iterable[Identifier]) -> str:
    """Return the text with placeholders. found: merged ranges, in order."""
    pieces, at = list[str](), 0
    for each in found:
        pieces += [text[at : each.start], each.placeholder]
        at = each.end
    return "".join([*pieces, text[at:]])
