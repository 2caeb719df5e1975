"""Chooses the most typical sentences of a text by extraction, without a language model. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log, sqrt

from vault.lexicon.tokens import terms
from vault.reader.rules.sentences import sentences

SAME = 0.6  # a sentence states nothing new if a chosen one has this share of its terms
FEWEST_TERMS = 3


def sentence_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence, in characters of the text."""
    at = 0
    for sentence in sentences(text):
        start = text.find(sentence, at)
        if start >= 0:
            at = start + len(sentence)
            yield start, at


def central_sentences(texts: Sequence[str], most: int) -> list[int]:
    """Return the numbers of the sentences that share the most terms with others, in the order of the texts.

    A term weighs the logarithm of the number of sentences with it; scores are normalized by length. A sentence that
    repeats a chosen one is skipped.
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
