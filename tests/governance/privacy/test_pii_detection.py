"""Row 23: personal data is found in English and Chinese, and little else is taken for it."""

from collections.abc import Iterator

import pytest

from governance.privacy.pii.detector import PatternDetector
from governance.vocabulary import PiiKind
from tests.governance.privacy.corpus import LANGUAGES, read_marked, records
from tests.governance.privacy.handwritten import CHINESE, ENGLISH
from tests.governance.privacy.mutants import MUTANTS, REGIONS, mutant
from tests.governance.privacy.scores import LEAST_RECALL, Score, score
from tests.harness.evidence import Evidence

CI, FULL = 1_200, 20_000  # records of one language


@pytest.fixture
def size(full_size: bool) -> int:
    return FULL if full_size else CI


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_of_each_kind_it_finds_98_of_100_and_of_100_findings_95_are_right(
    language: str, size: int, evidence: Evidence
) -> None:
    result = score(PatternDetector(REGIONS), records(language, size, seed=23))
    print(result.table())  # noqa: T201  the figures, kind by kind
    figures = {f"{kind} {name}": value for kind in result.hit for name, value in _figures(result, kind)}
    whole = {"records": size, "recall": round(result.recall(), 4), "precision": round(result.precision(), 4)}
    evidence(row=23, name=f"pii-{language}", figures=whole | figures)
    assert result.shortfalls() == [], "\n".join(result.examples[:20])


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_messages_marked_by_hand_are_read_as_well(texts: tuple[str, ...]) -> None:
    result = score(PatternDetector(REGIONS), [read_marked(text) for text in texts])
    assert min(result.recall(), result.precision()) >= LEAST_RECALL, result.examples


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_broken_rule_falls_short(name: str) -> None:
    detector = mutant(name)
    short = [
        found
        for language in sorted(LANGUAGES)
        for found in score(detector, records(language, CI, seed=23)).shortfalls()
    ]
    assert short != []


def _figures(result: Score, kind: PiiKind) -> Iterator[tuple[str, float]]:
    yield "recall", round(result.recall(kind), 4)
    yield "precision", round(result.precision(kind), 4)
