"""The interface of detectors of personal data, and the detector that ships with the product."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

from governance.privacy.pii.mails import mails
from governance.privacy.pii.network import network_addresses
from governance.privacy.pii.numbers import cards, ibans, national_ids
from governance.privacy.pii.phones import phones
from governance.privacy.pii.pii_ranges import Span, merge_overlaps
from governance.privacy.pii.secrets import secrets
from governance.privacy.pii.spelling import Folded, fold
from governance.privacy.pii.state_numbers import state_numbers

VERSION = "patterns/2"
SECONDS = 5.0  # of processor time for one text; the longest and worst takes a fraction of it
SHORT = 1_000  # characters; over so few no rule takes so long that the clock must be asked after each
Rule = Callable[[str], Iterable[Span]]


class DetectorFailed(Exception):
    """The detector could not check the text. The error contains no part of the text."""


class Detector(Protocol):
    """A detector of personal data. `version` is stored with each finding, because another version may find other
    places.
    """

    @property
    def version(self) -> str: ...

    def find(self, text: str) -> Sequence[Span]:
        """Return the spans of personal data in `text`, sorted and without overlaps. Raises DetectorFailed."""
        ...


class PatternDetector:
    """Detects by patterns with checksums and numbering plans, for English and Chinese. No text leaves the process."""

    version = VERSION

    def __init__(self, regions: Sequence[str], rules: Sequence[Rule] = (), seconds: float = SECONDS) -> None:
        """`regions`: phone numbers of these need no country code. `rules`: replace the standard rules."""
        self.rules = tuple(rules) or rules_for(regions)
        self.seconds = seconds

    def find(self, text: str) -> Sequence[Span]:
        if len(text) < 4 or text.isspace():
            return ()
        folded_text = fold(text)
        try:
            return merge_overlaps(self._matches(folded_text))
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise DetectorFailed(type(error).__name__) from None

    def _matches(self, folded_text: Folded) -> Iterator[Span]:
        deadline = time.thread_time() + self.seconds
        is_long = len(folded_text.text) > SHORT
        for rule in self.rules:
            for span in rule(folded_text.text):
                start, end = folded_text.original_range(span.start, span.end)
                yield Span(span.kind, start, end, span.rule)
            if is_long and time.thread_time() > deadline:
                raise RuntimeError("too slow")
        if time.thread_time() > deadline:
            raise RuntimeError("too slow")


def rules_for(regions: Sequence[str]) -> tuple[Rule, ...]:
    return (
        *(mails, cards, ibans, national_ids, network_addresses, secrets),
        *(partial(phones, regions=tuple(regions)), state_numbers),
    )
