"""Language models in their order of fallback, and the prices of their tokens. Pure."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from vault.providers.ports import ChatMessage, Completion, Llm, ProviderUnavailable

MILLION = 1_000_000
SMALLEST_COST = Decimal("0.000001")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Price:
    """Prices of a million tokens of prompts and of replies, in `currency` (ISO 4217).

    cached: of tokens of a prompt that the server took from its cache; None if they cost as much as the others.
    """

    prompt: Decimal = Decimal(0)
    completion: Decimal = Decimal(0)
    currency: str = ""
    cached: Decimal | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> Decimal:
        """Return the cost of one answer, rounded to SMALLEST_COST. cached_tokens: among `prompt_tokens`."""
        cached = self.prompt if self.cached is None else self.cached
        read = self.prompt * (prompt_tokens - cached_tokens) + cached * cached_tokens
        whole = read + self.completion * completion_tokens
        return (whole / MILLION).quantize(SMALLEST_COST)


@dataclass(frozen=True)
class PricedModel:
    llm: Llm
    price: Price = Price()


@dataclass(frozen=True)
class FallbackLlm:
    """A fallback chain of models for whole replies: the first that answers counts. `models` is not empty."""

    models: Sequence[PricedModel]

    @property
    def name(self) -> str:
        return self.models[0].llm.name

    def complete(self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Complete with the first model that answers. Raises ProviderUnavailable if each has failed."""
        for model in self.models[:-1]:
            try:
                return model.llm.complete(messages, schema=schema)
            except ProviderUnavailable as failure:
                logger.warning("the next model is asked: %s", failure.detail)
        return self.models[-1].llm.complete(messages, schema=schema)
