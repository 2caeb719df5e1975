"""What follows from a cube's words: its index terms, its hash, its place in the chain of versions. Pure."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass

from governance.keys.services import TokenMaker
from vault.cubes.marks import entity_marks, marks_of
from vault.cubes.words import Words
from vault.lexicon.tokens import single_characters, terms

WORD_KIND = "word"
SMALLINT = 32_767
CANONICAL = json.JSONEncoder(sort_keys=True, default=str)


@dataclass(frozen=True)
class Indexed:
    """All postings of one version: token → frequency, 0 for a mark to filter by, more for a word of the content.

    `length` counts its words, for BM25; `named`: those of the marks by which it names an entity.
    """

    entries: dict[int, int]
    length: int
    named: list[int]


def searchable(words: Words) -> str:
    """The text by which a version is found, by word and by vector: who said it belongs to it."""
    said = f"{words.speaker}: {words.content}" if words.speaker else words.content
    return f"{words.title}\n{said}" if words.title else said


def index_of(maker: TokenMaker, words: Words) -> Indexed:
    """The keyed tokens by which a version is found: title and content by word, the rest by mark."""
    text = searchable(words)
    found = terms(text)
    counted = Counter(found)
    if not text.isascii():
        counted |= Counter(single_characters(text))
    named = entity_marks(maker, words)
    entries = dict.fromkeys(marks_of(maker, words) | named, 0)
    tokens = maker.tokens(WORD_KIND)
    for word, count in counted.items():
        entries[tokens[word]] = min(count, SMALLINT)
    return Indexed(entries, length=min(len(found), SMALLINT), named=sorted(named))


def version_hash(*, previous: bytes | None, sealed: bytes, clear: dict[str, object]) -> bytes:
    """SHA-256 over the predecessor's hash, the sealed words and the clear fields: a version names its whole past."""
    canonical = CANONICAL.encode(clear).encode()
    return hashlib.sha256((previous or b"") + hashlib.sha256(sealed).digest() + canonical).digest()


def approximate_tokens(content: str) -> int:
    """Tokens of a text for budgets, without a tokenizer: 4 Latin characters or 1 CJK character each, at least 1."""
    if content.isascii():
        return max(1, (len(content) + 3) // 4)
    wide = sum(1 for character in content if ord(character) >= 0x2E80)
    return max(1, wide + (len(content) - wide + 3) // 4)
