"""Texts that quote others by reference, and how they read once the references are opened. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from vault.content.words import Quote, Words
from vault.lexicon.resolved_dates import write_dates
from vault.lexicon.tokens import language_of

MARKER = re.compile(r"\[(\d{1,2})\]")
VERDICTS = ("Yes. ", "No. ", "是的。", "不是。")  # with which an answer to yes or no begins
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
        """The quote with its marker, its speaker and date, and the dates that its own times mean."""
        day = self.time.date().isoformat() if self.time else ""
        said_at = None if self.is_resolved or self.time is None else self.time.replace(tzinfo=UTC)  # by its local day
        dates = write_dates(self.text, said_at) if said_at else ""
        source = ", ".join(part for part in (self.speaker, day) if part)
        note = "; ".join(part for part in (source, dates) if part)
        return f"“{self.text}” [{marker}]" + (f" ({note})" if note else "")


Passages = Mapping[Quote, Passage]


def quoted(words: Words, passages: Passages) -> Words:
    """`words` with each quote before its marker, or with a note that it is no longer available.

    A yes or no is shown only with all that it was taken from.
    """
    if not words.quotes:
        return words
    by_marker = {str(quote.marker): quote for quote in words.quotes}

    def opened(found: re.Match[str]) -> str:
        quote = by_marker.get(found[1])
        if quote is None:
            return found[0]
        if quote not in passages:
            return f"{found[0]} {UNAVAILABLE['zh' if language_of(words.content) == 'zh' else 'en']}"
        return passages[quote].line(quote.marker)

    content = words.content
    if not all(quote in passages for quote in words.quotes):
        content = content.removeprefix(next((one for one in VERDICTS if content.startswith(one)), ""))
    return replace(words, content=MARKER.sub(opened, content))
