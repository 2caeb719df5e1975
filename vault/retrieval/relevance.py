"""Relevance of a hit: it is about the question, and not merely the best there is."""

from vault.lexicon.tokens import language_of
from vault.retrieval.ranking import Parts

# Cosine from which a memory without a common word is about the question. Small embedders find all Chinese alike.
LEAST_DENSE, LEAST_DENSE_CHINESE = 0.35, 0.65


def is_relevant(parts: Parts, question: str) -> bool:
    """A memory with these parts of a score shares a word with the question, or its meaning."""
    least = LEAST_DENSE if language_of(question) == "en" else LEAST_DENSE_CHINESE
    return parts.lexical > 0 or parts.dense >= least
