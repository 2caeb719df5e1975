"""Synthetic conversations: any number of messages from one seed, for measuring time, never quality.

Words follow Zipf's law: a few are frequent, most are rare. The topic words of a session recur within it. About half of
the words are English function words, which an index leaves out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random

from benchmarks.locomo import Turn

SESSION = 25  # messages
VOCABULARY = 20_000
TOPIC = 30  # words that a session keeps coming back to
SPEAKERS = 12
BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)
ENDINGS = ("a", "e", "i", "o", "u", "an", "el", "or")
SYLLABLES = tuple(first + second for first in "bdfgklmnprstvz" for second in ENDINGS)
FOREIGN = tuple(first + second for first in "chjqwxy" for second in ENDINGS)  # shares no word with SYLLABLES
FUNCTION_WORDS = ("the", "and", "to", "of", "a", "in", "I", "it", "that", "was", "for", "you", "we", "with", "on", "is")
FORMS = (
    "What did {who} say about {words}?",
    "When did {who} mention {words}?",
    "Who knows about {words}?",
    "Where is {words} now, and why did {who} care?",
)


@dataclass(frozen=True)
class Language:
    """A vocabulary by rank, the most common word first, with cumulated frequencies; and the names of speakers."""

    words: tuple[str, ...]
    summed: tuple[float, ...]
    names: tuple[str, ...]


def language(random: Random, syllables: Sequence[str] = SYLLABLES) -> Language:
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        words["".join(random.choices(syllables, k=random.choice((2, 2, 3, 3, 4))))] = None
    ordered = tuple(words)
    # Mandelbrot's form of Zipf's law: frequency ∝ 1 / (rank + 2.7)
    summed = tuple(accumulate(1 / (rank + 2.7) for rank in range(1, VOCABULARY + 1)))
    return Language(ordered, summed, tuple(word.capitalize() for word in ordered[-SPEAKERS:]))


def conversation(count: int, seed: int, syllables: Sequence[str] = SYLLABLES) -> list[Turn]:
    """Return `count` messages in sessions of SESSION, each session between two speakers."""
    random = Random(seed)
    spoken = language(random, syllables)
    turns: list[Turn] = []
    for number in range(1, -(-count // SESSION) + 1):
        turns += _session(random, spoken, number)
    return turns[:count]


def questions(turns: list[Turn], count: int, seed: int) -> list[str]:
    """Return questions about some of the messages: two to four of a message's rarer words, mostly with a name."""
    random = Random(seed)
    common = {*language(Random(seed)).words[:50], *FUNCTION_WORDS}
    found = []
    for _ in range(count):
        turn = random.choice(turns)
        words = [word for word in dict.fromkeys(turn.text.rstrip(".").split()) if word not in common] or [turn.speaker]
        chosen = random.sample(words, k=min(len(words), random.choice((2, 3, 4))))
        found.append(random.choice(FORMS).format(who=turn.speaker, words=" ".join(chosen)))
    return found


def unknown_questions(count: int, seed: int) -> list[str]:
    """Return questions in words that no conversation made from SYLLABLES contains."""
    return questions(conversation(max(300, count), seed, FOREIGN), count, seed)


def _session(random: Random, spoken: Language, number: int) -> Iterator[Turn]:
    began = BEGAN + timedelta(hours=8 * number)
    who = random.sample(spoken.names, k=2)
    topic = random.choices(spoken.words, cum_weights=spoken.summed, k=TOPIC)
    for index in range(SESSION):
        at = began + timedelta(seconds=40 * index)
        yield Turn(f"D{number}:{index + 1}", number, who[index % 2], _sentence(random, spoken, topic), at)


def _sentence(random: Random, spoken: Language, topic: list[str]) -> str:
    length = max(4, min(60, round(random.lognormvariate(2.9, 0.5))))
    words = []
    for _ in range(length):
        kind = random.random()
        if kind < 0.5:
            words.append(random.choice(FUNCTION_WORDS))
        elif kind < 0.65:
            words.append(random.choice(topic))
        else:
            words += random.choices(spoken.words, cum_weights=spoken.summed)
    return " ".join(words) + "."
