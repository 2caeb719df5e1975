"""The text of an answer: from the first language model that gives one, else quoted from memories."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from governance.database import release_connection
from vault.chat.plans import TurnPlan
from vault.chat.rules import phrase
from vault.cubes.rules import approximate_tokens
from vault.endpoints.rules import Price, PricedModel
from vault.forms.payloads import salt_of
from vault.forms.rules import Form, FormChoice, FormReason
from vault.forms.services import adapter_load, blocks_choose
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
    """The source of the following text. model: None for quotes; failed: models that failed before their first word.
    adapter: the choice to use it, if there is one; blocks: the choice for each block of the prompt."""

    model: PricedModel | None = None
    failed: tuple[str, ...] = ()
    adapter: FormChoice | None = None
    blocks: tuple[FormChoice, ...] = ()

    @property
    def has_adapter(self) -> bool:
        """Return whether an adapter answers, in place of the prompt."""
        return self.adapter is not None and self.adapter.form is Form.ADAPTER

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

    An adapter that fails gives way to the text, and a model that fails before its first word to the next. Raises
    ProviderUnavailable if a model fails later, because the reader has seen a part of its answer; ReaderDisconnected if
    the reader has left.
    """
    failed: list[str] = []
    waiting = [] if plan.reply is not None else [(model, plan) for model in plan.models]
    while waiting:
        (model, plan), has_begun = waiting.pop(0), False
        answering = Answering(model, tuple(failed))
        try:
            release_connection()  # a model may take minutes; others need the connection
            is_engine = runs_in_engine(model.llm)
            answering = _choose(plan, answering, is_engine=is_engine)
            for piece in _model_pieces(plan, model, _use_of(plan, answering) if is_engine else None):
                if not has_begun:
                    yield answering
                has_begun = True
                yield piece
        except ProviderUnavailable as failure:
            if has_begun or isinstance(failure, ReaderDisconnected):
                raise
            logger.warning("a chat asks the next model: %s", failure.detail)
            if answering.has_adapter:
                waiting.insert(0, (model, replace(plan, adapter=None)))
            else:
                failed.append(model.llm.name)
        else:
            return
    yield Answering(None, tuple(failed))
    for number, line in enumerate(plan.extract_after(failed).lines):
        yield TextDelta(f"\n{line}" if number else line)


def _use_of(plan: TurnPlan, answering: Answering) -> EngineUse:
    """Return what the installation's engine may use for this request and no other."""
    salt = salt_of(plan.actor.tenant_id)
    if plan.adapter and answering.has_adapter:
        return EngineUse(adapter=plan.adapter.handle, salt=salt)
    used = [
        (place, block)
        for place, (block, choice) in enumerate(zip(plan.blocks, answering.blocks, strict=True))
        if choice.form is Form.CACHE
    ]
    return EngineUse(
        caches=tuple(block.handle for _, block in used),
        moved=tuple((block.handle, block.composition.recomputed) for place, block in used if place),
        salt=salt,
    )


def _choose(plan: TurnPlan, answering: Answering, *, is_engine: bool) -> Answering:
    """Choose the form of what is mounted: an adapter that knows what answers, else each of the blocks."""
    if plan.adapter is not None and not plan.is_trained:
        answering = replace(answering, adapter=FormChoice(Form.TEXT, FormReason.NOT_TRAINED))
    elif plan.adapter is not None:
        whole = sum(approximate_tokens(message.content) for message in plan.messages)
        choice = adapter_load(
            plan.adapter, is_engine=is_engine, prompt_tokens=whole, question_tokens=approximate_tokens(plan.asked)
        )
        answering = replace(answering, adapter=choice)
    if answering.has_adapter:
        return answering
    return replace(answering, blocks=blocks_choose(plan.blocks, is_engine=is_engine))


def _model_pieces(plan: TurnPlan, model: PricedModel, use: EngineUse | None) -> Iterator[TextDelta | Completion]:
    # An adapter was trained on the bare question, and knows what the memories say.
    messages = [ChatMessage(ChatRole.USER, plan.asked)] if use is not None and use.adapter else plan.messages
    for piece in model.llm.stream(messages, use):
        if isinstance(piece, Completion) and plan.goal:
            yield TextDelta(f"\n\n{phrase(plan.question, 'goal')} [{plan.goal.marker}]")
        yield piece
