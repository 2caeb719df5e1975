"""Choosing the sentences that stand for many: extractive, without a language model. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log, sqrt

from vault.lexicon.tokens import terms
from vault.reader.rules.sentences import sentences

SAME = 0.6  # share of a sentence's terms that a chosen one has already, from which it says nothing new
FEWEST_TERMS = 3


def sentence_ranges(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each sentence, in characters of the text."""
    at = 0
    for sentence in sentences(text):
        start = text.find(sentence, at)
        if start >= 0:
            at = start + len(sentence)
            yield start, at


def central_sentences(texts: Sequence[str], most: int) -> list[int]:
    """The numbers of the sentences that share the most terms with others, in the order of the texts.

    A term counts the logarithm of the sentences that have it; long sentences count no more than short ones. A sentence
    that says what a chosen one says is passed over.
    """
    stated = [frozenset(terms(text)) for text in texts]
    holding = Counter(term for sentence in stated for term in sentence)
    scores = [
        sum(log(holding[term]) for term in sentence) / sqrt(len(sentence)) if sentence else 0.0 for sentence in stated
    ]
    chosen: list[int] = []
    for number in sorted(range(len(texts)), key=lambda index: (-scores[index], index)):
        own = stated[number]
        if len(chosen) == most:
            break
        if len(own) >= FEWEST_TERMS and all(len(own & stated[earlier]) < SAME * len(own) for earlier in chosen):
            chosen.append(number)
    return sorted(chosen)
