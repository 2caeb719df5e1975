"""Checks and scaling that every embedder's output goes through."""

import numpy as np

from vault.providers.ports import Matrix, ProviderUnavailable


def unit_rows(matrix: Matrix) -> Matrix:
    """The rows scaled to length 1. Raises ProviderUnavailable for a row that is zero or holds NaN or infinity."""
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or np.any(lengths == 0):
        raise ProviderUnavailable("The embedder returned a vector that is zero or not finite")
    scaled: Matrix = (matrix / lengths).astype(np.float32)
    return scaled
