"""What personal data a text holds, by the detector of the settings; and what is to happen to it."""

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock

from django.conf import settings
from django.utils.module_loading import import_string

from governance.actor import Actor
from governance.privacy.pii.detector import Detector
from governance.vocabulary import PiiAction

_BUILDING = Lock()


def pii_action(*, actor: Actor, namespace_path: str | None, sensitivity: str) -> PiiAction:
    """What a write of this sensitivity into this namespace does with personal data; None: the actor's private one.

    The installation's default. A tenant's own policy will answer here.
    """
    return PiiAction(settings.PII_ACTION)


def detector() -> Detector:
    """The detector of settings.PII_DETECTOR, built once per process."""
    with _BUILDING:
        return _detector(settings.PII_DETECTOR, tuple(settings.PII_PHONE_REGIONS))


@lru_cache(maxsize=4)
def _detector(path: str, regions: Sequence[str]) -> Detector:
    made: Detector = import_string(path)(regions)
    return made
