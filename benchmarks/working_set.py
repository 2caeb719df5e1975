"""Measures working sets: memories that were ready before a question, and the head that prompts of a conversation share.

A dialogue is stored message by message. Its questions are then asked one after the other, in the order of the file.
Predictors see of a question what the product would: its text, the results of its search, and, as the memories that its
answer cites, the evidence among the first ten results.
"""

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import UUID, uuid4

from benchmarks.client import BenchmarkError
from benchmarks.gvd import dialogues, is_gvd
from benchmarks.locomo import conversations
from benchmarks.report import timing
from benchmarks.tables import markdown
from benchmarks.tenants import await_jobs, owner_of
from governance.actor import Actor
from governance.database import acting
from vault.chat import plans
from vault.chat.plans import TurnPlan
from vault.chat.rules import PastTurn as Repeated
from vault.chat.rules import prompt
from vault.chat.services import ConversationDraft, conversation_create, turn_begin, turn_finish
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.cubes.writer.builder import texts_index
from vault.endpoints.rules import PricedModel
from vault.layers.persona import profile_set
from vault.layers.services import persona_of_member
from vault.layers.working_set import turn_working_set
from vault.models import Cube
from vault.providers.ports import ChatMessage, Completion, EngineUse, TextDelta
from vault.providers.registry import embedder
from vault.reader.model_reader import MessageReading
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.scheduler.history import load_memories
from vault.scheduler.replacement import REPLACEMENTS, ReplacementName
from vault.scheduler.replay import Replayed, replay
from vault.scheduler.rules import PREDICTORS, Memories, PastTurn, Predictors, learn_weights, preload

BUDGETS = (1_000, 2_000, 4_000, 10_000)
CITED, DEPTH = 10, 100  # results that an answer may cite, and results of a search
PART = 100  # messages stored at once
TURNS = 50  # of the conversation whose prompts are compared
FORMER_TURNS = 4  # that prompts repeated before
PROFILE = {"name": "Ines Duarte", "home": "Porto", "work": "marine biologist"}
ALWAYS = 20  # memories of a prompt, so that each has preloaded ones
TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Utterance:
    """A message of a dialogue. session: its part of the dialogue."""

    id: str
    session: str
    speaker: str
    text: str = field(repr=False)
    at: datetime


@dataclass(frozen=True)
class Dialogue:
    """A dialogue with questions, each with the ids of the messages that answer it, at least one."""

    name: str
    messages: tuple[Utterance, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]


@dataclass(frozen=True)
class _Stored:
    """A stored dialogue. ids: message → memory; turns: its questions; wanted: the memories that answer each."""

    actor: Actor
    persona_id: UUID
    ids: dict[str, UUID]
    memories: Memories
    turns: list[PastTurn]
    wanted: list[frozenset[UUID]]


def working_sets(files: Sequence[Path]) -> dict[str, Any]:
    """Return the figures of one run, in new tenants, which are kept. files: LoCoMo's, GVD's. Raises BenchmarkError."""
    figures: dict[str, Any] = {"hits": {}, "policies": {}}
    for path in files:
        found = [_store(dialogue) for dialogue in _read(path)]
        figures["hits"][path.stem] = {
            f"{budget} tokens": _means([_replay(stored, ReplacementName.KEEP, budget) for stored in found])
            for budget in BUDGETS
        }
        figures["policies"][path.stem] = {
            name.value: _means([_replay(stored, name, BUDGETS[1]) for stored in found]) for name in ReplacementName
        }
        figures.setdefault("predictors", {})[path.stem] = _count_predictors(found)
        figures.setdefault("without", {})[path.stem] = _take_away(found)
        if path == files[0]:
            figures |= {"times": _times(found[0]), "prompts": _prompts(_read(path)[0])}
    return figures


def working_sets_table(figures: dict[str, Any]) -> str:
    hits = [
        [f"{name}, {budget}", mean["hits"], mean["recent"], mean["found"], mean["times the better"]]
        for name, budgets in figures["hits"].items()
        for budget, mean in budgets.items()
    ]
    policies = [
        [f"{name}, {policy}", mean["hits"], mean["recent"], mean["found"], mean["times the better"]]
        for name, some in figures["policies"].items()
        for policy, mean in some.items()
    ]
    prompts = [
        [name, of["same head"], of["tokens"], of["new tokens"], of["evidence"]]
        for name, of in figures["prompts"].items()
    ]
    times = [[name, of["p50"], of["p95"]] for name, of in figures["times"].items()]
    columns = ["working set", "newest", "last results", "times the better"]
    return "\n\n".join(
        [
            markdown(["file and budget", *columns], hits),
            markdown(["file and policy", *columns], policies),
            *(
                markdown([f"{name}, without", "working set"], list(of.items()))
                for name, of in figures["without"].items()
            ),
            markdown(["prompts", "same head", "tokens", "new tokens", "evidence in them"], prompts),
            markdown(["step", "p50 ms", "p95 ms"], times),
        ]
    )


def _read(path: Path) -> list[Dialogue]:
    try:
        is_other = is_gvd(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"cannot read {path}: {error}") from error
    return [*_gvd(path)] if is_other else [*_locomo(path)]


def _locomo(path: Path) -> Iterator[Dialogue]:
    for talk in conversations(path):
        said = (
            Utterance(turn.id, f"{talk.id}-{turn.session}", turn.speaker, turn.text, turn.at) for turn in talk.turns
        )
        yield Dialogue(talk.id, tuple(said), tuple((asked.text, asked.evidence) for asked in talk.questions))


def _gvd(path: Path) -> Iterator[Dialogue]:
    for talk in dialogues(path):
        said = tuple(
            Utterance(
                row["id"],
                f"{talk.person}-{row['date']}",
                talk.person if row["role"] == "user" else row["role"],
                row["text"],
                datetime.fromisoformat(row["date"]).replace(tzinfo=UTC) + timedelta(seconds=place),
            )
            for place, row in enumerate(talk.messages)
        )
        asked = ((text, frozenset().union(*parts)) for text, parts in talk.questions)
        yield Dialogue(talk.person, said, tuple((text, wanted) for text, wanted in asked if wanted))


def _store(dialogue: Dialogue) -> _Stored:
    """Store a dialogue in a tenant of its own, and search for each of its questions."""
    actor = owner_of(f"bench-working-{uuid4().hex[:8]}").actor
    ids = _add(actor, dialogue)
    with acting(actor):
        persona_id = persona_of_member(actor)
        assert persona_id is not None
        memories = load_memories(actor, persona_id, [], Cube.objects.visible_to(actor))
    begin = max(message.at for message in dialogue.messages)
    vectors = embedder().embed([text for text, _ in dialogue.questions])
    wanted = [frozenset(ids[key] for key in evidence) for _, evidence in dialogue.questions]
    turns = []
    for place, (text, _) in enumerate(dialogue.questions):
        search = SearchQuery(query=text, top_k=DEPTH, is_use=False, with_messages=True)
        found = tuple(hit.view.cube.id for hit in memories_search(actor=actor, search=search) if hit.score)
        used = wanted[place].intersection(found[:CITED])
        turns.append(PastTurn(begin + timedelta(minutes=place + 1), vectors[place], used, found))
    return _Stored(actor, persona_id, ids, memories, turns, wanted)


def _add(actor: Actor, dialogue: Dialogue) -> dict[str, UUID]:
    """Add the messages of a dialogue as memories; return the memory of each, once all have vectors."""
    drafts = [
        CubeDraft(content=said.text, speaker=said.speaker, session_id=said.session, message_id=said.id, said_at=said.at)
        for said in dialogue.messages
    ]
    ids: dict[str, UUID] = {}
    for at in range(0, len(drafts), PART):
        part = drafts[at : at + PART]
        added = cubes_add(actor=actor, drafts=part, texts=texts_index(actor.tenant_id, part))
        ids |= {draft.message_id or "": cube.cube.id for draft, cube in zip(part, added, strict=True)}
    await_jobs(actor)
    return ids


def _replay(stored: _Stored, name: ReplacementName, budget: int, predictors: Predictors = PREDICTORS) -> Replayed:
    policy = REPLACEMENTS[name]
    return replay(stored.memories, stored.turns, policy, budget, wanted=stored.wanted, predictors=predictors)


def _means(found: Sequence[Replayed]) -> dict[str, float]:
    """Return the means of the dialogues."""
    hits, recent, results = (
        statistics.mean(getattr(outcome, name) for outcome in found) for name in ("hits", "recent", "found")
    )
    return {
        "hits": round(hits, 4),
        "recent": round(recent, 4),
        "found": round(results, 4),
        "times the better": round(hits / max(recent, results), 2),
        "tokens": round(statistics.mean(outcome.tokens for outcome in found)),
        "questions": sum(outcome.turns for outcome in found),
    }


def _count_predictors(found: Sequence[_Stored]) -> dict[str, dict[str, int]]:
    """Return what each predictor preloaded, and what of that was used, with 2,000 tokens."""
    totals: dict[str, dict[str, int]] = {}
    for stored in found:
        for name, count in _replay(stored, ReplacementName.KEEP, BUDGETS[1]).counts.items():
            total = totals.setdefault(name or "missed", {"preloaded": 0, "used": 0})
            total["preloaded"] += count.preloaded
            total["used"] += count.used
    return totals


def _take_away(found: Sequence[_Stored]) -> dict[str, float]:
    """Return the evidence that is ready without each predictor, with 2,000 tokens; "" with all."""
    shares = {}
    for left_out in ("", *PREDICTORS):
        others = {name: predict for name, predict in PREDICTORS.items() if name != left_out}
        outcomes = [_replay(stored, ReplacementName.KEEP, BUDGETS[1], others) for stored in found]
        shares[left_out] = _means(outcomes)["hits"]
    return shares


def _times(stored: _Stored) -> dict[str, Any]:
    """Measure the steps of preloading: reading the memories of a persona, and choosing among them."""
    actor, turns = stored.actor, stored.turns

    def load() -> None:
        with acting(actor):
            load_memories(actor, stored.persona_id, turns[:50], Cube.objects.filter(tenant_id=actor.tenant_id))

    def choose() -> None:
        preload(
            stored.memories,
            turns[:50],
            weights=learn_weights({}),
            policy=REPLACEMENTS[ReplacementName.KEEP],
            before=set(),
            budget=BUDGETS[-1],
        )

    return {"read memories": vars(timing(_sample(load))), "choose": vars(timing(_sample(choose)))}


def _sample(work: Callable[[], object], times: int = 20) -> list[float]:
    samples = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        samples.append((time.perf_counter() - began) * 1000)
    return samples


class _Twin:
    """A model that repeats the first two memories that it gets with the question."""

    name = "twin"
    place = ("", "twin")

    def stream(self, messages: Sequence[ChatMessage], use: EngineUse | None = None) -> Iterator[TextDelta | Completion]:
        lines = [line for line in messages[-1].content.splitlines() if line.startswith("[")][:2]
        text = " ".join(line.split('" (said by')[0].partition('"')[2] + f" {line.split()[0]}." for line in lines)
        text = text or "I do not know."
        yield TextDelta(text)
        yield Completion(text, self.name, None, None)

    def complete(self, messages: Sequence[ChatMessage], *, schema: Any = None) -> Completion:
        raise NotImplementedError


def _prompts(dialogue: Dialogue) -> dict[str, Any]:
    """Compare the prompts of a conversation of TURNS questions: as they are, with ten preloaded memories each, and in
    the order of before.
    """
    now, former = _hold_conversation(dialogue, plans.FEWEST)
    more, _ = _hold_conversation(dialogue, ALWAYS)
    return {"now": now, "preloaded in each": more, "before": former}


def _hold_conversation(dialogue: Dialogue, fewest: int) -> tuple[dict[str, Any], dict[str, Any]]:
    actor = owner_of(f"bench-prompts-{uuid4().hex[:8]}").actor
    ids = _add(actor, dialogue)
    with acting(actor):
        persona_id = persona_of_member(actor)
    assert persona_id is not None
    profile_set(actor=actor, persona_id=persona_id, values=PROFILE)
    conversation = conversation_create(actor=actor, draft=ConversationDraft()).id
    model = [PricedModel(_Twin())]
    now, before = [], []
    shares: list[tuple[float, float]] = []
    with (
        mock.patch("vault.chat.services.models_list", return_value=model),
        mock.patch("vault.chat.plans.message_read", side_effect=_read_without_model),
        mock.patch.object(plans, "FEWEST", fewest),
    ):
        for text, evidence in dialogue.questions[:TURNS]:
            plan = turn_begin(actor=actor, conversation_id=conversation, content=text)
            now.append(_render(plan.messages))
            before.append(_render(_former_prompt(plan)))
            shares.append(_share_evidence(plan, {str(ids[key]) for key in evidence}))
            turn_finish(plan=plan)
            await_jobs(actor)
        held = _sample(
            lambda: turn_working_set(actor=actor, session=str(conversation), stable=1_000, working=300, most=10)
        )
    shown = _compare(now) | {"evidence": round(statistics.mean(share for share, _ in shares), 4)}
    former = _compare(before) | {"evidence": round(statistics.mean(share for _, share in shares), 4)}
    return shown | {"working set ms": vars(timing(held))}, former


def _read_without_model(actor: Actor, content: str, call: Any, models: Any) -> Any:
    """Read a message by patterns alone, as the twin reads none."""
    return MessageReading(call=call, statements=None)


def _former_prompt(plan: TurnPlan) -> list[ChatMessage]:
    """Return the prompt as it was before: the last four turns, then the agent, the results and the question."""
    past: Sequence[Repeated] = plan.past[-FORMER_TURNS:]
    return prompt(plan.asked, plan.evidence, past)


def _share_evidence(plan: TurnPlan, wanted: set[str]) -> tuple[float, float]:
    """Return the share of a question's evidence in its prompt, and among the results of its search."""
    results = {memory.source for memory in plan.evidence}
    held = results.union(memory.source for memory in (*plan.stable, *plan.preloaded))
    return len(wanted & held) / len(wanted), len(wanted & results) / len(wanted)


def _render(messages: Sequence[ChatMessage]) -> list[str]:
    """Return the tokens of a prompt: words and marks."""
    return [token for message in messages for token in (message.role, *TOKEN.findall(message.content))]


def _compare(prompts: Sequence[list[str]]) -> dict[str, Any]:
    """Return the share of the tokens of all prompts after the first that the prompt before begins with, too."""
    same = [
        next(
            (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
            min(map(len, (one, other))),
        )
        for one, other in pairwise(prompts)
    ]
    sizes = [len(tokens) for tokens in prompts[1:]]
    return {
        "same head": round(sum(same) / sum(sizes), 4),
        "tokens": round(statistics.mean(sizes)),
        "new tokens": round((sum(sizes) - sum(same)) / len(sizes)),
    }
