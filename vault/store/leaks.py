"""Finds the recipient of a leaked text by its wordings. Pure.

Each marked sentence in the text is one bit. The likelihood of a recipient is the product over all bits: 1 - ERROR if
the recipient's copy has that wording, else ERROR. The candidate `nobody` means that the wordings occur by chance; its
factor is 1/2 per bit.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from vault.store.wordings import Wordings, plain

ERROR = 0.02  # that a wording was changed by hand
NOBODY = 0.5


@dataclass(frozen=True)
class Match:
    """A recipient compared with the text. matching: bits, of the `compared` ones, that match its copy; probability:
    0..1."""

    recipient_id: UUID
    matching: int
    compared: int
    probability: float


def find_bits(text: str, wordings: Mapping[UUID, Wordings]) -> dict[UUID, bool]:
    """Return a bit for each marked sentence that the text has in exactly one wording: True for the second wording."""
    spread = plain(text)
    found = {key: _read_bit(spread, sentence) for key, sentence in wordings.items()}
    return {key: bit for key, bit in found.items() if bit is not None}


def rank_matches(bits: Mapping[UUID, bool], copies: Mapping[UUID, Mapping[UUID, bool]]) -> list[Match]:
    """Return the recipients with their probabilities, the most likely first. copies: recipient → bits of its copy.

    Before the comparison, all recipients and `nobody` are equally likely.
    """
    counted = {
        recipient_id: sum(copy[key] == bit for key, bit in bits.items()) for recipient_id, copy in copies.items()
    }
    logs = {recipient_id: _log_likelihood(matching, len(bits)) for recipient_id, matching in counted.items()}
    nobody = len(bits) * math.log(NOBODY)
    highest = max([nobody, *logs.values()])
    total = math.exp(nobody - highest) + sum(math.exp(log_ - highest) for log_ in logs.values())
    found = [
        Match(recipient_id, counted[recipient_id], len(bits), round(math.exp(logs[recipient_id] - highest) / total, 6))
        for recipient_id in copies
    ]
    return sorted(found, key=lambda match: (-match.probability, -match.matching, match.recipient_id))


def merge_bits(versions: Iterable[Mapping[UUID, bool]]) -> dict[UUID, bool]:
    """Merge the bits of several versions; a bit on which versions differ is left out."""
    found: dict[UUID, bool] = {}
    doubtful: set[UUID] = set()
    for bits in versions:
        doubtful |= {key for key, bit in bits.items() if found.get(key, bit) != bit}
        found.update(bits)
    return {key: bit for key, bit in found.items() if key not in doubtful}


def _read_bit(spread: str, wordings: Wordings) -> bool | None:
    """Return True if the text has the second wording, False for the first, None for neither or both.

    If one wording contains the other, the longer one counts.
    """
    first, second = plain(wordings.sentence), plain(wordings.second)
    has_first, has_second = first in spread, second in spread
    if has_first and has_second and (first in second or second in first):
        return len(second) > len(first)
    return has_second if has_first != has_second else None


def _log_likelihood(matching: int, compared: int) -> float:
    return matching * math.log(1 - ERROR) + (compared - matching) * math.log(ERROR)
