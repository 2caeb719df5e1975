"""Scores for pairs of question and text: what all rerankers share, and a deterministic one without a model."""

import math
import re
from collections.abc import Sequence

from vault.providers.ports import ProviderUnavailable

RERANKED = 50  # the best of a search, that are read again
SHARE = 0.7  # of a reranker in the score; the rest stays with words, context and vectors
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W_]+")


def blend_scores(score: float, relevance: float) -> float:
    """(1 - SHARE) · score + SHARE · relevance, all in 0..1. What was not read again has no relevance.

    By score and not by rank: a text that answers nothing falls behind however high it stood. SHARE is set, not learned.
    """
    return (1 - SHARE) * score + SHARE * relevance


class OverlapReranker:
    """The share of the question's words that a text has; a CJK character counts as a word. For tests."""

    name = "overlap"

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        wanted = _split_words(question)
        return [len(wanted & _split_words(text)) / len(wanted) if wanted else 0.0 for text in texts]


def check_scores(scores: Sequence[float], expected: int, source: str) -> list[float]:
    """The scores, one for each text and each in 0..1. Raises ProviderUnavailable."""
    if len(scores) != expected:
        raise ProviderUnavailable(f"{source} did not send one score per text")
    if not all(math.isfinite(score) and 0.0 <= score <= 1.0 for score in scores):
        raise ProviderUnavailable(f"{source} sent a score that is not between 0 and 1")
    return list(scores)


def _split_words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
