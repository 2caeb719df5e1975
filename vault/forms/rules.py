"""The choice of the form in which memories enter a prompt, by measured cost. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

LEAST_SAVING = 0.1  # of the time as text: below that, text is taken


class Form(StrEnum):
    """The forms in which a memory enters a prompt."""

    TEXT = "text"
    CACHE = "cache"
    ADAPTER = "adapter"


class FormReason(StrEnum):
    """The reasons for a form."""

    FASTER = "faster"
    TEXT_IS_FASTER = "text_is_faster"
    NO_ENGINE = "no_engine"  # the model that answered can load no caches
    OTHER_MODEL = "other_model"  # it was made for another model or precision
    NOT_LOADED = "not_loaded"  # the engine did not take it
    MOUNTED = "mounted"  # of an adapter
    NOT_TRAINED = "not_trained"  # a memory that answers was not trained into the adapter
    MOVED = "moved"  # behind another block, with its keys rotated


class Measure(Protocol):
    """Seconds that an engine needed with a context of some tokens (vault.providers.engines)."""

    @property
    def context(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def copy_seconds(self) -> float: ...
    @property
    def text_seconds(self) -> float: ...
    @property
    def cache_seconds(self) -> float: ...


@dataclass(frozen=True)
class Costs:
    """Seconds to the first token: a fixed part, and a part for each token of the context, as text and as a loaded
    cache; and seconds to copy a byte of a cache into the engine."""

    text_base: float
    text_token: float
    cache_base: float
    cache_token: float
    copy_byte: float

    def text_seconds(self, tokens: int) -> float:
        return self.text_base + self.text_token * tokens

    def cache_seconds(self, tokens: int, size: int, *, is_loaded: bool) -> float:
        return self.cache_base + self.cache_token * tokens + (0.0 if is_loaded else self.copy_byte * size)


@dataclass(frozen=True)
class FormChoice:
    """A form, its reason, and the estimated seconds to the first token as text and as a cache."""

    form: Form
    reason: FormReason
    text_seconds: float = 0.0
    cache_seconds: float = 0.0


def fit_costs(short: Measure, long: Measure) -> Costs:
    """Return the costs between two measures of different contexts."""
    more = max(long.context - short.context, 1)
    text = max((long.text_seconds - short.text_seconds) / more, 0.0)
    cache = max((long.cache_seconds - short.cache_seconds) / more, 0.0)
    return Costs(
        text_base=max(short.text_seconds - text * short.context, 0.0),
        text_token=text,
        cache_base=max(short.cache_seconds - cache * short.context, 0.0),
        cache_token=cache,
        copy_byte=long.copy_seconds / max(long.bytes, 1),
    )


def choose_moved(costs: Costs, tokens: int, size: int, *, recomputed: int, is_loaded: bool) -> FormChoice:
    """Choose text or a cache behind other blocks, of which `recomputed` tokens are read again. The seconds are those of
    its own part of the prompt."""
    again = min(recomputed, tokens)
    text = costs.text_token * tokens
    cache = costs.text_token * again + costs.cache_token * (tokens - again)
    cache += 0.0 if is_loaded else costs.copy_byte * size
    is_cache = cache < text * (1 - LEAST_SAVING)
    form, reason = (Form.CACHE, FormReason.MOVED) if is_cache else (Form.TEXT, FormReason.TEXT_IS_FASTER)
    return FormChoice(form, reason, round(text, 4), round(cache, 4))


def choose_form(costs: Costs, tokens: int, size: int, *, is_loaded: bool) -> FormChoice:
    """Choose text or a cache of `size` bytes for a context of `tokens`: a cache only where it saves time."""
    text, cache = costs.text_seconds(tokens), costs.cache_seconds(tokens, size, is_loaded=is_loaded)
    is_cache = cache < text * (1 - LEAST_SAVING)
    form, reason = (Form.CACHE, FormReason.FASTER) if is_cache else (Form.TEXT, FormReason.TEXT_IS_FASTER)
    return FormChoice(form, reason, round(text, 4), round(cache, 4))
