"""Detectors that a test puts in the place of the usual one, by settings.PII_DETECTOR."""

from collections.abc import Sequence

from governance.privacy.pii.detector import DetectorFailed
from governance.privacy.pii.pii_ranges import Span

FAILING = "tests.governance.privacy.failing_detectors.FailingDetector"


class FailingDetector:
    """Cannot say anything about any text."""

    version = "failing/1"

    def __init__(self, regions: Sequence[str]) -> None:
        self.regions = regions

    def find(self, text: str) -> Sequence[Span]:
        raise DetectorFailed("it is broken")
