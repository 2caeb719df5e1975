"""The quality of compositions: prompts of moved caches beside the full prompt, with invented facts, by model."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from vault.chat.rules import Evidence, block_prompt
from vault.forms.measured import measure_once
from vault.providers.engines import EngineModel, InferenceEngine
from vault.vocabulary import Composition

MEASURED = 4  # memories of the prompts, and questions
KEY = "forms:quality:{fingerprint}"
TIME = datetime(2026, 3, 2, 10, tzinfo=UTC)
# A fact, a question, and a word of the right answer.
FACTS = (
    ("The museum closes at six in the evening.", "When does the museum close?", "six"),
    ("The caretaker of the museum is Ines Marlow.", "Who is the caretaker of the museum?", "Ines"),
    ("The library on the second floor opens on Thursdays only.", "On which day does the library open?", "Thursday"),
    ("The guided tour starts at the marble staircase.", "Where does the guided tour start?", "staircase"),
    ("Visitors leave their bags in the cloakroom.", "Where do visitors leave their bags?", "cloakroom"),
    ("The oldest painting of the collection shows a lighthouse.", "What does the oldest painting show?", "lighthouse"),
    ("A ticket for adults costs nine pounds.", "How much does a ticket for adults cost?", "nine"),
    ("The garden was laid out by Tomas Verne.", "Who laid out the garden?", "Verne"),
    ("The cafe serves lentil soup every Friday.", "What does the cafe serve every Friday?", "lentil"),
    ("Photographs are not allowed in the watercolour room.", "Where are photographs not allowed?", "watercolour"),
)
MOVED = tuple(choice for choice in Composition if choice is not Composition.EXACT)


@dataclass(frozen=True)
class Quality:
    """Figures of a composition, each a mean over questions. kl: of the distributions of the first token to the full
    prompt's, in nats; same: share of the replies that are the full prompt's; right: of those that name the fact;
    seconds: to the first token; moved: tokens that were not read."""

    kl: float
    same: float
    right: float
    seconds: float
    moved: float


@dataclass(frozen=True)
class Qualities:
    """The figures of each composition, and those of the full prompt. without: `kl` of prompts without the memories."""

    tokens: float
    full: Quality
    without: float
    moved: dict[Composition, Quality]


def model_quality(engine: InferenceEngine, model: EngineModel) -> dict[str, dict[str, float]]:
    """Return the share of equal replies and the divergence of each composition; the first call measures for some
    seconds. Empty if the model's keys cannot be moved. Raises ProviderUnavailable; EngineBusy.
    """
    if not model.is_movable:
        return {}

    def measure() -> dict[str, dict[str, float]]:
        measured = measure_quality(engine, MEASURED)
        return {str(choice): {"kl": row.kl, "same": row.same} for choice, row in measured.moved.items()}

    return measure_once(KEY.format(fingerprint=model.fingerprint), measure)


def measure_quality(engine: InferenceEngine, memories: int, size: int = 1) -> Qualities:
    """Ask about each of some memories, with a cache for each `size` of them, with each composition.

    Raises ProviderUnavailable; EngineBusy.
    """
    facts = FACTS[:memories]
    system, text = (message.content for message in block_prompt([_make_evidence(*row) for row in enumerate(facts, 1)]))
    parts = [facts[at : at + size] for at in range(0, memories, size)]
    blocks = [block_prompt([_make_evidence(*row) for row in enumerate(part, 1)])[-1].content for part in parts]
    agains = [choice.recomputed for choice in MOVED]
    found = [
        (word, engine.compare_compositions(system, blocks, text, f"\nQuestion: {question}", agains))
        for _, question, word in facts
    ]
    full = [(0.0, one.reply, one.reply, word, one.seconds, 0) for word, one in found]
    rows = {
        choice: [
            (one.rows[at].kl, one.rows[at].reply, one.reply, word, one.rows[at].seconds, one.rows[at].moved)
            for word, one in found
        ]
        for at, choice in enumerate(MOVED)
    }
    return Qualities(
        tokens=_mean([one.tokens for _, one in found]),
        full=_summarize(full),
        without=_mean([one.without for _, one in found]),
        moved={choice: _summarize(of_choice) for choice, of_choice in rows.items()},
    )


def _make_evidence(marker: int, fact: tuple[str, str, str]) -> Evidence:
    return Evidence("", 1, marker, fact[0], "user", TIME, score=1.0)


def _summarize(rows: Sequence[tuple[float, str, str, str, float, int]]) -> Quality:
    return Quality(
        kl=_mean([row[0] for row in rows]),
        same=_mean([row[1] == row[2] for row in rows]),
        right=_mean([row[3] in row[1] for row in rows]),
        seconds=_mean([row[4] for row in rows]),
        moved=_mean([row[5] for row in rows]),
    )


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 3)
