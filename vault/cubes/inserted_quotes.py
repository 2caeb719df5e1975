"""Texts with passages of other memories, or computations from these, in place of the references. Pure."""

import re
from collections.abc import Mapping
from dataclasses import replace

from vault.content.words import Quote, Words
from vault.cubes.computations import insert_computations
from vault.cubes.passages import MARKER, Passage
from vault.lexicon.tokens import language_of

VERDICTS = ("Yes. ", "No. ", "是的。", "不是。")  # beginnings of an answer to a yes-or-no question
UNAVAILABLE = {"en": "(no longer available)", "zh": "（已无法查看）"}
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
    shown = {quote.marker: passages[quote] for quote in words.quotes if quote in passages}
    content = insert_computations(content, shown, language_of(words.content))
    return replace(words, content=MARKER.sub(write_passage, content))
