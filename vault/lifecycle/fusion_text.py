"""Proposes the text of a fusion and the parts of a split, by extraction, without a language model. Pure."""

from collections.abc import Iterator, Sequence

from vault.lexicon.tokens import terms
from vault.reader.rules.sentences import sentences

SAME = 0.8  # a sentence states nothing new if the text has this share of its terms


def fused_text(texts: Sequence[str], longest: int) -> str:
    """Return the first text and the sentences of the others that state something new; at most `longest` characters.

    texts: the newest statement first.
    """
    lead = texts[0].strip()
    known = [frozenset(terms(sentence)) for sentence in sentences(lead)]
    lines = [lead]
    room = longest - len(lead)
    for sentence in _new_sentences(texts[1:], known):
        if len(sentence) + 1 > room:
            break
        lines.append(sentence)
        room -= len(sentence) + 1
    return "\n".join(lines)


def split_parts(text: str) -> list[str]:
    """Return the paragraphs of a text; if there is only one, its sentences."""
    paragraphs = [part.strip() for part in text.replace("\r\n", "\n").split("\n\n") if part.strip()]
    return paragraphs if len(paragraphs) > 1 else sentences(text)


def _new_sentences(texts: Sequence[str], known: list[frozenset[str]]) -> Iterator[str]:
    for text in texts:
        for sentence in sentences(text):
            stated = frozenset(terms(sentence))
            if stated and all(len(stated & words) < SAME * len(stated) for words in known):
                known.append(stated)
                yield sentence
