"""Texts that quote other memories by reference, with the references replaced by the quoted passages. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from vault.content.words import Quote, Words
from vault.lexicon.resolved_dates import write_dates
from vault.lexicon.tokens import language_of

MARKER = re.compile(r"\[(\d{1,2})\]")
VERDICTS = ("Yes. ", "No. ", "是的。", "不是。")  # beginnings of an answer to a yes-or-no question
UNAVAILABLE = {"en": "(no longer available)", "zh": "（已无法查看）"}


@dataclass(frozen=True)
class Passage:
    """A quoted passage in its current wording; `time`: when it was said, in the reader's time zone. is_resolved: when
    it happened.
    """

    text: str = field(repr=False)
    speaker: str = field(repr=False)
    time: datetime | None
    is_resolved: bool = False

    def line(self, marker: int) -> str:
        """Return the quote with its marker, speaker and date, and the dates that its temporal expressions mean."""
        day = self.time.date().isoformat() if self.time else ""
        said_at = None if self.is_resolved or self.time is None else self.time.replace(tzinfo=UTC)  # by its local day
        dates = write_dates(self.text, said_at) if said_at else ""
        source = ", ".join(part for part in (self.speaker, day) if part)
        note = "; ".join(part for part in (source, dates) if part)
        return f"“{self.text}” [{marker}]" + (f" ({note})" if note else "")


Passages = Mapping[Quote, Passage]


def insert_quotes(words: Words, passages: Passages) -> Words:
    """Put each quote before its marker, or a note that it is no longer available after the marker.

    A leading yes or no is removed if any quote is unavailable.
    """
    if not words.quotes:
        return words
    by_marker = {str(quote.marker): quote for quote in words.quotes}

    def write_passage(found: re.Match[str]) -> str:
        quote = by_marker.get(found[1])
        if quote is None:
            return found[0]
        if quote not in passages:
            return f"{found[0]} {UNAVAILABLE['zh' if language_of(words.content) == 'zh' else 'en']}"
        return passages[quote].line(quote.marker)

    content = words.content
    if not all(quote in passages for quote in words.quotes):
        content = content.removeprefix(next((verdict for verdict in VERDICTS if content.startswith(verdict)), ""))
    return replace(words, content=MARKER.sub(write_passage, content))
