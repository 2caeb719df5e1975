"""Reranking by a sentence-transformers cross-encoder that is already on this machine (the extra `ml`)."""

import math
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from threading import Lock
from typing import Any

from vault.providers.ports import ProviderUnavailable
from vault.providers.reranker import check_scores


class CrossEncoderReranker:
    """`model`: a folder, or a name in the local hub cache, with one output. Nothing is downloaded.

    Loading (seconds, hundreds of megabytes) waits for the first use. About 10 ms for each text on one core.
    """

    def __init__(self, model: str) -> None:
        self.name = f"sentence-transformers/{model}"
        self._model_name = model
        self._using = Lock()  # one batch at a time: more threads only make the CPU's cache colder

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """The sigmoid of each pair's logit: models save activations of their own, which are not all in 0..1."""
        if not texts:
            return []
        with self._using:
            logits = self._model.predict(
                [(question, text) for text in texts],
                activation_fn=import_module("torch").nn.Identity(),
                show_progress_bar=False,
            )
        if getattr(logits, "ndim", 1) != 1:
            raise ProviderUnavailable(f"{self.name} is no reranker: it has more than one output")
        return check_scores([sigmoid(float(logit)) for logit in logits], len(texts), self.name)

    @cached_property
    def _model(self) -> Any:
        try:
            library = import_module("sentence_transformers")
        except ModuleNotFoundError as error:
            raise ProviderUnavailable(f"{self.name} needs the extra `ml`: {error.name} is not installed") from error
        import_module("torch").set_num_threads(1)  # two threads on busy cores are slower than one
        try:
            return library.CrossEncoder(self._model_name, device="cpu", local_files_only=True)
        except (OSError, ValueError) as error:
            raise ProviderUnavailable(f"{self.name} is not on this machine, or cannot be loaded") from error


def sigmoid(logit: float) -> float:
    """1 / (1 + e^-x), without overflow at either end."""
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))
