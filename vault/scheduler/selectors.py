"""The state of a persona's scheduler, and replays of its history with each replacement policy."""

from dataclasses import dataclass
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.personas.lookup import OBJECT_TYPE
from governance.vocabulary import Permission, Verb
from vault.layers.selectors import persona_authorize
from vault.layers.working_set import BUDGET
from vault.models import Cube
from vault.scheduler.history import load_memories, load_turns
from vault.scheduler.replacement import REPLACEMENTS, ReplacementName
from vault.scheduler.replay import Replayed, replay
from vault.scheduler.rules import Count, learn_weights
from vault.scheduler.services import load_counts, replacement_in_force

REPLAYED = 60  # turns of a replay, for which somebody waits


@dataclass(frozen=True)
class PredictorState:
    """A predictor with its weight and counts."""

    name: str
    weight: float
    preloaded: int
    used: int


@dataclass(frozen=True)
class SchedulerState:
    """The policy in force, the predictors, and the number of used memories that none had preloaded."""

    replacement: ReplacementName
    predictors: tuple[PredictorState, ...]
    missed: int


def scheduler_state(*, actor: Actor, persona_id: UUID) -> SchedulerState:
    """Return the state of a persona's scheduler. Raises NotFound; Forbidden."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        counts = load_counts(persona_id)
        predictors = [
            PredictorState(name, round(weight, 3), counts.get(name, Count()).preloaded, counts.get(name, Count()).used)
            for name, weight in learn_weights(counts).items()
        ]
        if "kept" in counts:
            predictors.append(PredictorState("kept", 1.0, counts["kept"].preloaded, counts["kept"].used))
        return SchedulerState(replacement_in_force(persona_id), tuple(predictors), counts.get("", Count()).used)


def working_sets_replay(
    *, actor: Actor, persona_id: UUID, budget: int = BUDGET, latest: int = REPLAYED
) -> dict[ReplacementName, Replayed]:
    """Replay the `latest` turns of a persona with each replacement policy, over the memories that the actor may read.

    Stores nothing. Raises NotFound; Forbidden. Writes: AuditEntry.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        turns = load_turns(actor, persona_id, latest=latest)
        memories = load_memories(actor, persona_id, turns, Cube.objects.visible_to(actor))
        record(actor=actor, verb=Verb.PERSONA_READ, object_type=OBJECT_TYPE, object_ids=[persona_id])
    return {name: replay(memories, turns, policy, budget) for name, policy in REPLACEMENTS.items()}
