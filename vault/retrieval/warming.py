"""Loading, when a process starts, of what its first search would else wait for."""

from contextlib import suppress

from django.conf import settings

from vault.lexicon.temporal_expressions import asks_for_time
from vault.lexicon.tokens import content_terms
from vault.providers.ports import ProviderUnavailable
from vault.providers.registry import embedder

QUESTION = "Where did Anna move to last Tuesday? \u5b89\u5a1c\u4e0a\u5468\u642c\u5230\u54ea\u91cc\u4e86\uff1f"


def load_models() -> None:
    """Load the embedder's weights, unless another server has them, and the dictionaries of words. About 2 s."""
    content_terms(QUESTION)
    asks_for_time(QUESTION)
    with suppress(ProviderUnavailable):  # told where it is asked, and by doctor
        model = embedder()
        if settings.MEMOS_EMBEDDER.family != "openai":
            model.embed([QUESTION])
