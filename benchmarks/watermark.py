"""Measures watermarks of packs: how often a changed copy identifies its recipient, next to a digest of the whole
copy."""

import hashlib
import random
from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any
from uuid import UUID

from benchmarks.tables import markdown
from vault.store.leaks import Match, find_bits, rank_matches
from vault.store.wordings import Wordings, plain

SEED = 20_261_125
MEMORIES = 60
SURE = 0.99  # the least probability at which a recipient counts as identified

Attack = Callable[[list[str], random.Random], list[str]]


def watermark(recipients: int, trials: int, marked: Sequence[int]) -> dict[str, Any]:
    """Return the shares of copies that identified the right and a wrong recipient, by number of marked sentences and
    attack.

    A copy is a list of texts, one per memory, as a subscriber has them.
    """
    chance = random.Random(SEED)
    figures: dict[str, Any] = {
        "seed": SEED,
        "recipients": recipients,
        "trials": trials,
        "memories": MEMORIES,
        "sure": SURE,
    }
    figures["marked"] = {
        str(count): {name: _survival(attack, count, recipients, trials, chance) for name, attack in ATTACKS.items()}
        for count in marked
    }
    return figures


def watermark_table(figures: dict[str, Any]) -> str:
    rows = [
        [f"{name}, {count} marked", *(figure[key] for key in ("named", "wrong", "bits", "probability", "digest"))]
        for count, found in figures["marked"].items()
        for name, figure in found.items()
    ]
    return markdown(["copy", "named", "wrongly named", "bits", "probability", "by digest"], rows)


def _survival(attack: Attack, count: int, recipients: int, trials: int, chance: random.Random) -> dict[str, float]:
    """Return figures about `trials` leaks that `attack` changed.

    named, wrong: shares with the right and with a wrong recipient at a probability of SURE; bits: mean of compared
    sentences; digest: share found by the digest of the whole copy.
    """
    keys = [UUID(int=chance.getrandbits(128)) for _ in range(count)]
    wordings = {key: _wordings(number) for number, key in enumerate(keys)}
    ids = [UUID(int=chance.getrandbits(128)) for _ in range(recipients)]
    copies = {recipient: {key: bool(chance.getrandbits(1)) for key in keys} for recipient in ids}
    named, wrong, bits, probabilities, by_digest = 0, 0, list[int](), list[float](), 0
    digests = {_digest(_copy(wordings, copies[recipient])): recipient for recipient in ids}
    for _ in range(trials):
        leaker = chance.choice(ids)
        leaked = attack(_copy(wordings, copies[leaker]), chance)
        found = find_bits("\n".join(leaked), wordings)
        best = rank_matches(found, copies)[0]
        named += _is_sure(best) and best.recipient_id == leaker
        wrong += _is_sure(best) and best.recipient_id != leaker
        bits.append(len(found))
        probabilities.append(best.probability if best.recipient_id == leaker else 0.0)
        by_digest += digests.get(_digest(leaked)) == leaker
    shares = {"named": named / trials, "wrong": wrong / trials, "digest": by_digest / trials}
    return {name: round(share, 3) for name, share in shares.items()} | {
        "bits": round(mean(bits), 1),
        "probability": round(mean(probabilities), 3),
    }


def _is_sure(best: Match) -> bool:
    return best.probability >= SURE


def _wordings(number: int) -> Wordings:
    return Wordings(f"It returns in March to pool {number}.", f"In March it is back at pool {number}.")


def _copy(wordings: dict[UUID, Wordings], bits: dict[UUID, bool]) -> list[str]:
    """Return the texts of a copy: MEMORIES in all, of which the first ones have a marked sentence."""
    texts = [
        f"Heron {number} is grey. {wording.second if bits[key] else wording.sentence} It eats fish."
        for number, (key, wording) in enumerate(wordings.items())
    ]
    return texts + [f"Heron {number} has no pool." for number in range(len(texts), MEMORIES)]


def _digest(texts: Sequence[str]) -> bytes:
    return hashlib.sha256("\n".join(texts).encode()).digest()


def _half(texts: list[str], chance: random.Random) -> list[str]:
    """Return a random half of the memories, in their order."""
    kept = set(chance.sample(range(len(texts)), len(texts) // 2))
    return [text for number, text in enumerate(texts) if number in kept]


def _reorder(texts: list[str], chance: random.Random) -> list[str]:
    return chance.sample(texts, len(texts))


def _set_anew(texts: list[str], chance: random.Random) -> list[str]:
    """Return the text as a different typesetting: without punctuation, in capitals, in lines of another length."""
    words = " ".join(texts).replace(".", "").upper().split()
    return [" ".join(words[start : start + 7]) for start in range(0, len(words), 7)]


def _reword(texts: list[str], chance: random.Random) -> list[str]:
    """Return the texts with a fifth of the memories in other words, without their marked sentences."""
    changed = set(chance.sample(range(len(texts)), len(texts) // 5))
    return [plain(text)[:12] if number in changed else text for number, text in enumerate(texts)]


ATTACKS: dict[str, Attack] = {
    "copy": lambda texts, chance: texts,
    "trimmed to half": _half,
    "re-ordered": _reorder,
    "half, re-ordered": lambda texts, chance: _reorder(_half(texts, chance), chance),
    "set anew": _set_anew,
    "a fifth reworded": _reword,
    "text of nobody": lambda texts, chance: [f"Heron {number} is elsewhere." for number in range(len(texts))],
}
