"""Storing of turns: question, answer and stated facts each become a memory; the turn has the citations."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from governance.audit.services import record
from governance.database import acting
from governance.policies.quotas import tokens_add
from governance.vocabulary import Permission, Verb
from vault.chat.answers import Answering
from vault.chat.plans import TurnPlan
from vault.chat.rules import Extract, count_tokens_used, markers_in
from vault.chat.selectors import Citation, Retrieved, TurnView, conversation_locate, load_retrieved, message_ids_of
from vault.content.drafts import CubeDraft, SourceRef
from vault.cubes.rules import approximate_tokens
from vault.cubes.services import AddedCube, cubes_add
from vault.cubes.usage import usage_count
from vault.cubes.writer.builder import TextIndexes, texts_index
from vault.forms.rules import Form, FormChoice, FormReason
from vault.forms.services import form_count_use
from vault.layers.services import turn_append
from vault.layers.working_set import BLOCK
from vault.models import Conversation, Turn
from vault.namespaces.services import chat_namespace
from vault.providers.ports import Completion
from vault.reader.rules import Statement
from vault.reader.services import MODEL, PATTERNS, statement_draft
from vault.reconciliation.services import relations_store
from vault.vocabulary import Layer, MessageRole, SemanticType, Source, SourceKind, TurnEnd


@dataclass(frozen=True)
class TurnTexts:
    """The texts of a turn, read before its transaction.

    answer: the text of its memory; extract: None for a model's answer; stated: the statements in the question.
    """

    answer: str = field(repr=False)
    extract: Extract | None
    stated: tuple[Statement, ...]
    indexes: TextIndexes = field(repr=False)


@dataclass(frozen=True)
class TurnAnswer:
    """The whole answer, not yet stored."""

    text: str = field(repr=False)
    completion: Completion = field(repr=False)
    end: TurnEnd
    answering: Answering
    read: TurnTexts = field(repr=False)


def turn_store(*, plan: TurnPlan, answer: TurnAnswer) -> TurnView:
    """Store a question and its answer. Raises NotFound; Forbidden; Invalid; QuotaExceeded.

    Writes: Cube × 2 …, Turn, AuditEntry …, OutboxEvent.
    """
    actor, said, completion, read = plan.actor, answer.text, answer.completion, answer.read
    prompt_tokens, completion_tokens = _sum_tokens(plan, answer)
    cached_tokens = min(completion.cached_tokens or 0, prompt_tokens)
    price = answer.answering.price
    with acting(actor):
        row = conversation_locate(actor, plan.conversation_id, lock=True)
        asked, answered, *stated = _cubes_of_turn(plan, row, read)
        changes = relations_store(
            actor=actor, added=stated, relations=plan.relations, permission=Permission.CONVERSATION_USE
        )
        cited = [plan.citations[marker - 1] for marker in markers_in(said, len(plan.citations))]
        turn = Turn(
            id=plan.turn_id,
            tenant_id=actor.tenant_id,
            conversation=row,
            position=_next_position(row),
            question=asked.cube,
            answer=answered.cube,
            model=completion.model,
            citations=[_encode_citation(citation) for citation in cited],
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cached_tokens=cached_tokens,
            cost=price.cost(prompt_tokens, completion_tokens, cached_tokens),
            currency=price.currency,
            failed_models=list(answer.answering.failed),
            end=answer.end,
            intent=plan.intent,
            retrieved=[_encode_retrieved(plan, row, answer.answering) for row in plan.retrieved],
            goal_id=UUID(plan.goal.source) if plan.goal else None,
        )
        turn_append(actor=actor, conversation=row, asked=asked, answered=answered)
        tokens_add(actor, prompt_tokens + completion_tokens, usage_count)
        turn.save(force_insert=True)
        _count_forms(plan, answer.answering)
        Conversation.objects.filter(id=row.id).update(updated_at=Now())
        record(
            actor=actor,
            verb=Verb.TURN_CREATED,
            object_type="turn",
            object_ids=[turn.id],
            detail={"model": turn.model, "citations": len(turn.citations), "end": answer.end},
        )
    shown = said if answered.words.quotes else answered.content
    return replace(_stored_view(turn, asked.content, shown, tuple(cited)), changes=tuple(changes))


def _encode_retrieved(plan: TurnPlan, row: Retrieved, answering: Answering) -> dict[str, Any]:
    form_id, composition, choice = _find_form(plan, row, answering)
    if choice is not None:
        row = replace(
            row,
            form=choice.form,
            form_reason=choice.reason,
            text_seconds=choice.text_seconds,
            cache_seconds=choice.cache_seconds,
            form_id=str(form_id),
            composition=composition if choice.reason is FormReason.MOVED else "",
        )
    return asdict(row) | {"memory_id": str(row.memory_id)}


def _find_form(plan: TurnPlan, row: Retrieved, answering: Answering) -> tuple[UUID | None, str, FormChoice | None]:
    """Return the form by which a memory entered a prompt, its composition, and the choice; None without one."""
    if plan.adapter is not None and answering.has_adapter:
        is_learned = bool(row.marker) and plan.adapter.covers([row.memory_id])
        return (plan.adapter.form.id, "", answering.adapter) if is_learned else (None, "", None)
    for block, choice in zip(plan.blocks, answering.blocks, strict=False):  # quotes of memories have no choices
        if row.tier == BLOCK and row.memory_id in block.form.parents:
            return block.form.id, block.composition, choice
    if plan.adapter is not None and answering.adapter and row.marker and plan.adapter.covers([row.memory_id]):
        return plan.adapter.form.id, "", answering.adapter
    return None, "", None


def _count_forms(plan: TurnPlan, answering: Answering) -> None:
    """Count the blocks that entered as caches, or an adapter in their place. Writes: MemoryForm …."""
    if plan.adapter is not None and answering.has_adapter:
        choice = answering.adapter
        saved = choice.text_seconds - choice.cache_seconds if choice else 0.0
        form_count_use(plan.adapter.form.id, tokens=_count_tokens(plan), seconds=max(saved, 0.0))
    for block, choice in zip(plan.blocks, answering.blocks, strict=False):
        if choice.form is Form.CACHE:
            tokens = block.form.tokens
            if choice.reason is FormReason.MOVED:
                tokens = max(tokens - block.composition.recomputed, 0)
            form_count_use(block.form.id, tokens=tokens, seconds=choice.text_seconds - choice.cache_seconds)


def _count_tokens(plan: TurnPlan) -> int:
    """Return the tokens of the prompt that an adapter made unnecessary."""
    whole = sum(approximate_tokens(message.content) for message in plan.messages)
    return max(whole - approximate_tokens(plan.asked), 0)


def answer_make(plan: TurnPlan, said: str, completion: Completion, answering: Answering, end: TurnEnd) -> TurnAnswer:
    return TurnAnswer(said, completion, end, answering, _read_turn(plan, said, answering))


def _encode_citation(citation: Citation) -> dict[str, str | int | float]:
    stored: dict[str, str | int | float] = {
        "memory_id": str(citation.memory_id),
        "marker": citation.marker,
        "score": citation.score,
    }
    return stored | {"pack": citation.pack} if citation.pack else stored


def _next_position(conversation: Conversation) -> int:
    """Return the position of the next turn, by one look-up; the caller has locked the conversation."""
    turns = Turn.objects.filter(tenant_id=conversation.tenant_id, conversation=conversation).order_by("-position")
    last = turns.values_list("position", flat=True).first()
    return 0 if last is None else last + 1


def _stored_view(turn: Turn, question: str, answer: str, cited: tuple[Citation, ...]) -> TurnView:
    """Return the view of a turn that was just stored, without reading it again."""
    return TurnView(
        id=turn.id,
        conversation_id=turn.conversation_id,
        position=turn.position,
        question=question,
        answer=answer,
        withheld=False,
        citations=cited,
        model=turn.model,
        end=TurnEnd(turn.end),
        prompt_tokens=turn.prompt_tokens,
        completion_tokens=turn.completion_tokens,
        created_at=turn.created_at,
        intent=turn.intent,
        retrieved=load_retrieved(turn),
        goal_id=turn.goal_id,
        cost=turn.cost,
        currency=turn.currency,
        failed_models=tuple(turn.failed_models),
        cached_tokens=turn.cached_tokens,
        message_ids=message_ids_of(turn),
    )


def _sum_tokens(plan: TurnPlan, answer: TurnAnswer) -> tuple[int, int]:
    """Return the tokens of the prompts and of the replies, with those for reading the question."""
    read = (plan.reading.prompt_tokens, plan.reading.completion_tokens) if plan.reading else (0, 0)
    if answer.answering.model is None:
        return read
    prompt_tokens, completion_tokens = count_tokens_used(answer.completion, plan.messages, answer.text)
    return prompt_tokens + read[0], completion_tokens + read[1]


def _read_turn(plan: TurnPlan, said: str, answering: Answering) -> TurnTexts:
    """Return the texts of a turn with their indexes, made before its transaction. Raises KeyUnavailable."""
    extract, stated = _read_extract(plan, said, answering), plan.stated
    question = CubeDraft(content=plan.question, speaker=MessageRole.USER)
    content = said if extract is None else "\n".join(extract.frame)
    answer = CubeDraft(content=content, speaker=MessageRole.ASSISTANT)
    return TurnTexts(
        answer=content,
        extract=extract,
        stated=stated,
        indexes=texts_index(
            plan.actor.tenant_id, [question, answer, *(_statement_draft(statement) for statement in stated)]
        ),
    )


def _statement_draft(statement: Statement) -> CubeDraft:
    return CubeDraft(content=statement.text, speaker=MessageRole.USER)


def _cubes_of_turn(plan: TurnPlan, row: Conversation, read: TurnTexts) -> tuple[AddedCube, ...]:
    """Add the memories of a turn: question and answer in the chat's namespace, and one for each statement."""
    chats = chat_namespace(actor=plan.actor).path
    extract = read.extract
    answer = CubeDraft(
        content=read.answer,
        namespace=chats,
        persona=str(row.persona_id) if row.persona_id else None,
        session_id=str(row.id),
        message_id=f"{plan.turn_id}/answer",
        speaker=MessageRole.ASSISTANT,
        semantic_type=SemanticType.DIALOGUE,
        layer=Layer.SHORT_TERM,
        source=Source.CHAT,
        is_message=True,
        is_dialogue_only=True,
    )
    question = replace(
        answer,
        content=plan.question,
        message_id=f"{plan.turn_id}/question",
        speaker=MessageRole.USER,
        is_dialogue_only=not read.stated,
    )
    reader = MODEL if plan.reading and plan.reading.statements is not None else PATTERNS
    drafts = [statement_draft(question, statement, parent=0, reader=reader) for statement in read.stated]
    stated = [replace(draft, namespace=None) for draft in drafts]
    if extract is None:
        answer = replace(answer, sources=plan.sources, parent=0, parent_kind=SourceKind.TEXT)
    else:
        named = (SourceRef(UUID(quote.source), quote.version, SourceKind.QUOTE) for quote in extract.quotes)
        answer = replace(answer, sources=tuple(named), quotes=extract.quotes)
    permission = Permission.CONVERSATION_USE
    added = cubes_add(actor=plan.actor, drafts=[question, answer, *stated], permission=permission, texts=read.indexes)
    return tuple(added)


def _read_extract(plan: TurnPlan, said: str, answering: Answering) -> Extract | None:
    """Return the extract of an answer; None for a model's answer."""
    return plan.extract_after(answering.failed).until(said) if answering.model is None else None
