"""The text proposed for a fusion, and the parts proposed for a split: extractive, without a language model. Pure."""

from collections.abc import Iterator, Sequence

from vault.lexicon.tokens import terms
from vault.reader.rules.sentences import sentences

SAME = 0.8  # share of a sentence's terms that the text has already, from which it says nothing new


def fused_text(texts: Sequence[str], longest: int) -> str:
    """The first text whole, and of the others the sentences that state something else; at most `longest` characters.

    texts: the newest statement first, since it leads.
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
    """The paragraphs of a text; where there is one alone, its sentences."""
    paragraphs = [part.strip() for part in text.replace("\r\n", "\n").split("\n\n") if part.strip()]
    return paragraphs if len(paragraphs) > 1 else sentences(text)


def _new_sentences(texts: Sequence[str], known: list[frozenset[str]]) -> Iterator[str]:
    for text in texts:
        for sentence in sentences(text):
            stated = frozenset(terms(sentence))
            if stated and all(len(stated & words) < SAME * len(stated) for words in known):
                known.append(stated)
                yield sentence
