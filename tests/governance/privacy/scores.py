"""Scores of a detector on labelled records, kind by kind."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from governance.privacy.pii.detector import Detector
from governance.vocabulary import PiiKind
from tests.governance.privacy.corpus import Record

LEAST_RECALL, LEAST_PRECISION = 0.98, 0.95
SLACK = 2  # characters that a finding may be longer than what was put there


@dataclass
class Score:
    """Counts of what was found, missed and found wrongly; `examples` of the latter two."""

    hit: Counter[PiiKind] = field(default_factory=Counter)
    missed: Counter[PiiKind] = field(default_factory=Counter)
    false: Counter[PiiKind] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def recall(self, kind: PiiKind | None = None) -> float:
        return _share(_count_of(self.hit, kind), _count_of(self.missed, kind))

    def precision(self, kind: PiiKind | None = None) -> float:
        return _share(_count_of(self.hit, kind), _count_of(self.false, kind))

    def shortfalls(self) -> list[str]:
        """Return the scores below the promise, over all and for each kind."""
        kinds: list[PiiKind | None] = [None, *sorted({*self.hit, *self.missed, *self.false})]
        return [
            f"{name} of {kind or 'all'}: {share:.3f}"
            for kind in kinds
            for name, share, least in (
                ("recall", self.recall(kind), LEAST_RECALL),
                ("precision", self.precision(kind), LEAST_PRECISION),
            )
            if share < least
        ]

    def table(self) -> str:
        return "\n".join(
            f"{kind:16} recall {self.recall(kind):.4f} precision {self.precision(kind):.4f}"
            f" of {self.hit[kind] + self.missed[kind]}"
            for kind in sorted({*self.hit, *self.missed, *self.false})
        )


def score(detector: Detector, records: Iterable[Record]) -> Score:
    """A finding counts when it covers a label of its kind, and little more than that."""
    result = Score()
    for record in records:
        labels = list(record.labels)
        for span in detector.find(record.text):
            hit = next(
                (
                    label
                    for label in labels
                    if label.kind is span.kind and span.start <= label.start and label.end <= span.end
                ),
                None,
            )
            if hit is not None and (span.end - span.start) - (hit.end - hit.start) <= SLACK:
                labels.remove(hit)
                result.hit[span.kind] += 1
            else:
                result.false[span.kind] += 1
                result.examples.append(f"false {span.kind} {record.text[span.start : span.end]!r} in {record.about}")
        for label in labels:
            result.missed[label.kind] += 1
            result.examples.append(f"missed {label.kind} {record.text[label.start : label.end]!r} in {record.text!r}")
    return result


def _count_of(counts: Counter[PiiKind], kind: PiiKind | None) -> int:
    return counts.total() if kind is None else counts[kind]


def _share(right: int, wrong: int) -> float:
    return right / (right + wrong) if right + wrong else 1.0
