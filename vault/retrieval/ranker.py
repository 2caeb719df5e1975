"""The ranking of memories for a question: lexical scores, candidates of each source in turn, fusion, heat and trust.

Opens no memory. docs/architecture.md walks through it.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Case, F, FloatField, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Coalesce, Now
from pgvector.django import CosineDistance

from vault.embeddings.calibration import calibrate_all
from vault.models import CubeUse
from vault.models.cube import CubeQuerySet
from vault.models.namespace import NOTHING
from vault.retrieval.fusion import NO_PARTS, Ranked, ScoredCandidates, Weights, order_by_score, score_candidates
from vault.retrieval.lexical import Candidates
from vault.retrieval.question import Question
from vault.retrieval.scope import Scope
from vault.retrieval.sources import SOURCES, CandidateSource
from vault.retrieval.statements import begin_ranking, read_lexical, read_passing_ids, use_steady_plans
from vault.vocabulary import Preference, Source

WEIGHED_AMONG = 100  # best hits to which heat and trust are added
OWN_FIRST = Case(When(source=Source.PACK, then=Value(0.0)), default=Value(1.0), output_field=FloatField())
WORTH = {None: F("trust"), Preference.OFFICIAL: F("trust"), Preference.PERSONAL: OWN_FIRST}


@dataclass(frozen=True)
class HeatAndTrust:
    """The behaviour scores of a memory. heat: at least 0 (vault/lifecycle/behaviour.py); trust: 0..1, of its writer.

    fingerprint: cosine (-1..1) of the question and the centroid of the questions that the memory answered. is_ended:
    as `Ranked` has it.
    """

    heat: float
    trust: float
    fingerprint: float = 0.0
    is_ended: bool = False


def rank(scope: Scope, question: Question, limit: int, *, sources: Sequence[CandidateSource] = SOURCES) -> list[Ranked]:
    """Return the best `limit` memories in `scope`, best first, in the caller's transaction.

    Runs two queries. Further ones: one for filters that are no columns of the index; one if a speaker or a time of the
    question may change the result; one if vectors may change it, and another if the vector index returns too few rows;
    one for heat and trust, if MEMOS_SEARCH_WEIGHTS gives them a weight.
    """
    if not question.weights.behaviour:
        return score_all(scope, question, limit, sources).find_best(limit)
    among = max(limit, WEIGHED_AMONG)
    found = score_all(scope, question, among, sources).find_best(among)
    return weigh_heat_and_trust(found, _load_heat_and_trust(scope, question, found), question.weights, limit)


def score_all(
    scope: Scope, question: Question, limit: int, sources: Sequence[CandidateSource] = SOURCES
) -> ScoredCandidates:
    """Return the candidates of all sources for `limit` results, with their scores before the last step."""
    ranking = begin_ranking(scope, question, limit)
    with use_steady_plans() if ranking.is_steady else nullcontext():
        if not scope.index.is_whole:
            ranking = read_passing_ids(ranking)
        if question.terms.words and question.weights.words:
            ranking = read_lexical(ranking)
        scale = partial(calibrate_all, model=question.vector.model, language=question.language)
        scored = score_candidates(ranking.lexical, Candidates(None), question.weights, limit)
        for source in sources:
            found = source.find(ranking, scored)
            if len(found) or ranking.nearness:
                candidates = scored.candidates.join(found)
                scored = score_candidates(
                    ranking.lexical, candidates, question.weights, limit, ranking.nearness, scale=scale
                )
    return scored


def fill_results(scope: Scope, question: Question, found: list[Ranked], limit: int) -> list[Ranked]:
    """Fill the results up to `limit` with the newest visible memories; an open search adds chat memories last.

    A search with `min_score` is not filled, because the added memories would score 0. Runs one query if results are
    missing, and a second one in an open search.
    """
    if scope.search.min_score > 0 or not scope.search.is_filled:
        return found
    if len(found) < limit:
        found = found + list_newest(scope.select_cubes(question.statistics.namespaces), found, limit - len(found))
    if scope.places.is_open and len(found) < limit:
        found = found + list_newest(scope.select_with_chats(), found, limit - len(found))
    return found


def list_newest(visible: CubeQuerySet, found: Sequence[Ranked], missing: int) -> list[Ranked]:
    """Return the newest memories that are not in `found`, with the score 0, at most `missing`."""
    if missing <= 0:
        return []
    rest = visible.exclude(id__in=[row.cube_id for row in found]).order_by("-id").values_list("id", flat=True)
    return [Ranked(cube_id, 0.0, NO_PARTS) for cube_id in rest[:missing]]


def weigh_heat_and_trust(
    found: Sequence[Ranked], standing: Mapping[UUID, HeatAndTrust], weights: Weights, limit: int
) -> list[Ranked]:
    """Add weighted heat and trust to the fused scores, whose weight is 1, and return the `limit` best."""
    rows = [_add_behaviour(row, standing.get(row.cube_id, HeatAndTrust(0.0, 0.0)), weights) for row in found]
    return order_by_score(rows)[:limit]


def _load_heat_and_trust(scope: Scope, question: Question, found: Sequence[Ranked]) -> dict[UUID, HeatAndTrust]:
    """Load heat, trust and fingerprint of the results in one query.

    If personal statements are preferred, their trust is 1 and that of pack statements 0. A statement whose validity has
    ended is preferred to none.
    """
    search = scope.search
    ended = Q(valid_to__lte=search.as_of or Now()) if search.prefer else NOTHING
    worth = Case(When(ended, then=Value(0.0)), default=WORTH[search.prefer], output_field=FloatField())
    uses = CubeUse.objects.filter(tenant_id=OuterRef("tenant_id"), cube_id=OuterRef("id"))
    near: Any = Value(0.0)
    if question.vector.vector is not None:
        fingerprints = uses.filter(fingerprint_model=question.vector.model)
        distances = fingerprints.annotate(distance=CosineDistance("fingerprint", question.vector.vector))
        near = Coalesce(1.0 - Subquery(distances.values("distance")), 0.0, output_field=FloatField())
    visible = scope.select_cubes(question.statistics.namespaces)
    rows = visible.filter(id__in=[row.cube_id for row in found]).annotate(
        heat=Coalesce(Subquery(uses.values("heat")), 0.0, output_field=FloatField()),
        fingerprint=near,
        worth=worth,
        is_ended=Case(When(ended, then=Value(True)), default=Value(False)),
    )
    columns = ("id", "heat", "worth", "fingerprint", "is_ended")
    return {cube_id: HeatAndTrust(*parts) for cube_id, *parts in rows.values_list(*columns)}


def _add_behaviour(row: Ranked, standing: HeatAndTrust, weights: Weights) -> Ranked:
    heat, fingerprint = standing.heat / (1 + standing.heat), max(0.0, standing.fingerprint)
    parts = replace(row.parts, heat=heat, trust=standing.trust, fingerprint=fingerprint)
    added = weights.heat * parts.heat + weights.trust * parts.trust + weights.fingerprint * parts.fingerprint
    return Ranked(row.cube_id, (row.score + added) / (1 + weights.behaviour), parts, standing.is_ended)
