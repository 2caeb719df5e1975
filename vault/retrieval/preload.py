"""Loads models when a process starts, so that its first search need not wait for them."""

from contextlib import suppress

from django.conf import settings

from vault.lexicon.temporal_expressions import asks_for_time
from vault.lexicon.tokens import content_terms
from vault.providers.ports import ProviderUnavailable
from vault.providers.registry import embedder

QUESTION = "Where did Anna move to last Tuesday? \u5b89\u5a1c\u4e0a\u5468\u642c\u5230\u54ea\u91cc\u4e86\uff1f"


def load_models() -> None:
    """Load the embedder, unless another server runs it, and the dictionaries of words. Takes about 2 seconds."""
    content_terms(QUESTION)
    asks_for_time(QUESTION)
    with suppress(ProviderUnavailable):  # the first search and `doctor` report it
        model = embedder()
        if settings.MEMOS_EMBEDDER.family != "openai":
            model.embed([QUESTION])
