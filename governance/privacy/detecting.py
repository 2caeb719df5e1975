"""What personal data a text holds, by the detector of the settings; and what is to happen to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

from django.conf import settings
from django.utils.module_loading import import_string

from governance.actor import Actor
from governance.privacy.pii.detector import Detector
from governance.vocabulary import PiiAction

_BUILDING = Lock()


@dataclass(frozen=True)
class PiiRule:
    """What happens to personal data, by its kind; `action` to kinds that have none of their own."""

    action: PiiAction
    kinds: Mapping[str, PiiAction] = field(default_factory=dict)

    def action_for(self, kind: str) -> PiiAction:
        return self.kinds.get(kind, self.action)


def pii_rule(*, actor: Actor, namespace_path: str, sensitivity: str) -> PiiRule:
    """The rule for a write of this sensitivity into this namespace: the installation's, until a policy answers here."""
    return PiiRule(PiiAction(settings.PII_ACTION))


def detector() -> Detector:
    """The detector of settings.PII_DETECTOR, built once per process."""
    with _BUILDING:
        return _detector(settings.PII_DETECTOR, tuple(settings.PII_PHONE_REGIONS))


@lru_cache(maxsize=4)
def _detector(path: str, regions: Sequence[str]) -> Detector:
    made: Detector = import_string(path)(regions)
    return made
