"""Detection of personal data in a text, by the detector of the settings."""

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock

from django.conf import settings
from django.utils.module_loading import import_string

from governance.privacy.pii.detector import Detector

_BUILDING = Lock()


def detector() -> Detector:
    """Return the detector of settings.PII_DETECTOR, built once per process."""
    with _BUILDING:
        return _detector(settings.PII_DETECTOR, tuple(settings.PII_PHONE_REGIONS))


@lru_cache(maxsize=4)
def _detector(path: str, regions: Sequence[str]) -> Detector:
    made: Detector = import_string(path)(regions)
    return made
