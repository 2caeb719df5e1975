"""Evidence: memories in the form in which an answer uses them."""

from collections.abc import Sequence

from django.utils.timezone import localtime

from governance.actor import Actor
from vault.chat.rules import Agent, Evidence, PastTurn, prompt
from vault.chat.selectors import RetrievedView, TurnView
from vault.cubes.quotes import is_from_reader, localise_event
from vault.cubes.selectors import CubeView
from vault.layers.persona_scope import is_own_memory, is_own_speaker
from vault.layers.working_set import BLOCK, STABLE, WORKING
from vault.providers.ports import ChatMessage
from vault.retrieval.fusion import NO_PARTS, Parts


def make_evidence(actor: Actor, marker: int, view: CubeView, *, score: float, parts: Parts = NO_PARTS) -> Evidence:
    cube, words = view.cube, view.words
    return Evidence(
        source=str(cube.id),
        version=cube.version,
        marker=marker,
        text=words.content,
        speaker=words.speaker,
        time=localtime(cube.stated_at),
        happens=localise_event(cube.happens_at),
        score=score,
        parts=parts,
        session=words.session_id,
        position=cube.position,
        is_from_reader=is_from_reader(actor, cube, words.speaker),
        semantic_type=cube.semantic_type,
        is_own=is_own_speaker(actor, words.speaker),
        is_of_reader=is_own_memory(actor, cube),
    )


def rebuild_prompt(
    actor: Actor, asked: str, found: Sequence[RetrievedView], past: Sequence[TurnView], agent: Agent | None
) -> list[ChatMessage]:
    """Return the prompt of a turn, built again from the memories that its reader may read now.

    asked: the question as it was searched; found: the turn's memories, in any order; past: the turns before it.
    """
    numbered = sorted((view for view in found if view.retrieved.marker), key=lambda view: view.retrieved.marker)
    evidence = [
        make_evidence(actor, view.retrieved.marker, view.memory, score=view.retrieved.score) for view in numbered
    ]
    tiers = {str(view.retrieved.memory_id): view.retrieved.tier for view in numbered}
    stable = [memory for memory in evidence if tiers[memory.source] == STABLE]
    block = [memory for memory in evidence if tiers[memory.source] == BLOCK]
    others = sorted(evidence, key=lambda memory: tiers[memory.source] != WORKING)
    told = [PastTurn(turn.question, turn.answer) for turn in past if turn.question and turn.answer]
    return prompt(asked, others, told, agent=agent, stable=stable, block=block)
