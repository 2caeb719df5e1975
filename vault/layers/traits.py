"""Traits: 90 dimensions in three groups (traits.json), read from a person's words. Pure but for that file."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from vault.layers.statements import is_about_self
from vault.reader.rules import is_question, sentences

FILE = Path(__file__).with_name("traits.json")
MIDDLE, HALF = 3, 2  # of the scale 1 to 5
DOUBT = 4  # pages at which the confidence is one half
AGAINST = re.compile(
    r"\b(?:not|no|never|don't|doesn't|didn't|can't|won't|hate|dislike|isn't|aren't|stopped|without)\b|不|没|别|讨厌|从不"
)


@dataclass(frozen=True)
class Dimension:
    """One of the 90 dimensions. group: personality, alignment or interest; levels go from 1, the opposite, to 5."""

    code: str
    group: str
    name: str
    name_zh: str
    definition: str
    cues: re.Pattern[str] = field(repr=False)


@dataclass(frozen=True)
class Level:
    """A level, 1..5, and its confidence, 0..1."""

    level: int
    confidence: float


@cache
def dimensions() -> Mapping[str, Dimension]:
    """Return all dimensions by their code, in the order of the file."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        row["code"]: Dimension(
            row["code"],
            row["group"],
            row["name"],
            row["name_zh"],
            row["definition"],
            _compile_cues(row["cues"], row["cues_zh"]),
        )
        for row in rows
    }


def trait_signs(text: str) -> dict[str, int]:
    """Return the dimensions for which a person's words are evidence: 1 for, -1 against. Questions are no evidence."""
    found: dict[str, int] = {}
    for sentence in dict.fromkeys(sentences(text)):
        folded = sentence.casefold().replace("\u2019", "'")
        asks = is_question(sentence)
        if not asks and not is_about_self(sentence):
            continue
        for code, dimension in dimensions().items():
            if asks and dimension.group != "alignment":
                continue
            if match := dimension.cues.search(folded):
                found.setdefault(code, -1 if AGAINST.search(folded[: match.start()]) else 1)
    return found


def estimate_level(pages: int, balance: int) -> Level:
    """Return the level of a trait, nearer to the middle of the scale the fewer pages there are.

    balance: the number of pages for the dimension minus the number against it.
    """
    level = min(max(round(MIDDLE + HALF * balance / (pages + 1)), 1), 5)
    return Level(level, round(pages / (pages + DOUBT), 3))


def _compile_cues(words: Sequence[str], chinese: Sequence[str]) -> re.Pattern[str]:
    spaced = "|".join(re.escape(word) for word in words)
    return re.compile("|".join([rf"\b(?:{spaced})(?:s|es|ing|ed)?\b", *(re.escape(word) for word in chinese)]))
