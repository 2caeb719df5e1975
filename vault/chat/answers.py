"""The text of an answer: from the first language model that gives one, else quoted from memories."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from governance.database import release_connection
from vault.chat.plans import TurnPlan
from vault.chat.rules import phrase
from vault.endpoints.rules import Price, PricedModel
from vault.forms.payloads import salt_of
from vault.forms.rules import Form, FormChoice
from vault.forms.services import adapter_load, block_choose
from vault.providers.ports import (
    ChatMessage,
    ChatRole,
    Completion,
    EngineUse,
    ProviderUnavailable,
    ReaderDisconnected,
    TextDelta,
)
from vault.providers.registry import runs_in_engine
from vault.vocabulary import EXTRACTIVE

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answering:
    """The source of the following text. model: None for quotes; failed: models that failed before their first word."""

    model: PricedModel | None = None
    failed: tuple[str, ...] = ()
    choice: FormChoice | None = None  # of the block of the prompt

    @property
    def price(self) -> Price:
        return self.model.price if self.model else Price()

    @property
    def completion(self) -> Completion:
        """Return a completion without text and token counts, for an answer that was cut off before its end."""
        name = self.model.llm.name if self.model else EXTRACTIVE
        return Completion(text="", model=name, prompt_tokens=None, completion_tokens=None)


def answer_pieces(plan: TurnPlan) -> Iterator[Answering | TextDelta | Completion]:
    """Call the models of a plan in their order, outside any transaction; if all fail, yield the extract of the plan.

    A model that fails before its first word gives way to the next. Raises ProviderUnavailable if a model fails later,
    because the reader has seen a part of its answer; ReaderDisconnected if the reader has left.
    """
    failed: list[str] = []
    for model in () if plan.reply is not None else plan.models:
        has_begun = False
        try:
            release_connection()  # a model may take minutes; others need the connection
            is_engine = runs_in_engine(model.llm)
            choice = _choose(plan, is_engine=is_engine)
            for piece in _model_pieces(plan, model, _use_of(plan, choice) if is_engine else None):
                if not has_begun:
                    yield Answering(model, tuple(failed), choice)
                has_begun = True
                yield piece
        except ProviderUnavailable as failure:
            if has_begun or isinstance(failure, ReaderDisconnected):
                raise
            logger.warning("a chat asks the next model: %s", failure.detail)
            failed.append(model.llm.name)
        else:
            return
    yield Answering(None, tuple(failed))
    for number, line in enumerate(plan.extract_after(failed).lines):
        yield TextDelta(f"\n{line}" if number else line)


def _use_of(plan: TurnPlan, choice: FormChoice | None) -> EngineUse:
    """Return what the installation's engine may use for this request and no other."""
    form = choice.form if choice else Form.TEXT
    caches = (plan.block.handle,) if plan.block and form is Form.CACHE else ()
    adapter = plan.adapter.handle if plan.adapter and form is Form.ADAPTER else ""
    return EngineUse(caches=caches, adapter=adapter, salt=salt_of(plan.actor.tenant_id))


def _choose(plan: TurnPlan, *, is_engine: bool) -> FormChoice | None:
    """Return the form of what is mounted: an adapter that knows all that was found, else the block. None without."""
    if plan.adapter is not None:
        choice = adapter_load(plan.adapter, is_engine=is_engine)
        if choice.form is Form.ADAPTER or plan.block is None:
            return choice
    return block_choose(plan.block, is_engine=is_engine) if plan.block else None


def _model_pieces(plan: TurnPlan, model: PricedModel, use: EngineUse | None) -> Iterator[TextDelta | Completion]:
    # An adapter was trained on the bare question, and knows what the memories say.
    messages = [ChatMessage(ChatRole.USER, plan.asked)] if use is not None and use.adapter else plan.messages
    for piece in model.llm.stream(messages, use):
        if isinstance(piece, Completion) and plan.goal:
            yield TextDelta(f"\n\n{phrase(plan.question, 'goal')} [{plan.goal.marker}]")
        yield piece
