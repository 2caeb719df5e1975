"""MemOperator's search: words, what was said around them, vectors, speakers and times, fused; permission inside it.

A search returns min(top_k, visible) rows however small the tenant. docs/architecture.md says how its cost grows.
"""

from dataclasses import dataclass
from uuid import UUID

from governance.actor import Actor
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import CubeView, cubes_read
from vault.lexicon.moments import spans_of
from vault.models import Cube
from vault.models.cube import CubeQuerySet
from vault.providers.registry import embedder
from vault.retrieval.queries import SearchQuery, narrowing, seen_namespaces, states
from vault.retrieval.ranker import MOST_TERMS, Ranked, question_of, rank, survey
from vault.retrieval.ranking import DENSE, HYBRID, LEXICAL, Parts
from vault.vocabulary import SearchMode

MODES = {SearchMode.HYBRID: HYBRID, SearchMode.LEXICAL: LEXICAL, SearchMode.DENSE: DENSE}
NO_PARTS = Parts(lexical=0.0, context=0.0, session=0.0, dense=0.0, entity=0.0, time=0.0)


@dataclass(frozen=True)
class Hit:
    """A found memory. score: 0..1, comparable within one search."""

    view: CubeView
    score: float
    parts: Parts


def memories_search(*, actor: Actor, search: SearchQuery) -> list[Hit]:
    """The best rows for a question among those the actor may read, best first.

    The question is embedded before the transaction. Raises Forbidden; Invalid; ProviderUnavailable; KeyUnavailable.
    Writes: AuditEntry naming the ids, OutboxEvent. Queries: three, one more when few rows are found, and the audit.
    """
    authorize(actor, Permission.MEMORY_READ)
    if search.mode not in MODES and search.mode is not SearchMode.TAG:
        raise Invalid(errors=[FieldError("mode", f"{search.mode} is not built yet; use hybrid, dense, lexical or tag")])
    vector = _vector(search)
    with acting(actor):
        ranked = _ranked(actor, search, vector)
        views = cubes_read(actor=actor, cube_ids=[row.cube_id for row in ranked], verb=Verb.MEMORY_SEARCHED)
    return [Hit(view=view, score=row.score, parts=row.parts) for row, view in zip(ranked, views, strict=True)]


def _vector(search: SearchQuery) -> list[float] | None:
    if search.mode in MODES and MODES[search.mode].dense:
        vector: list[float] = embedder().embed([search.query])[0].tolist()
        return vector
    return None


def _ranked(actor: Actor, search: SearchQuery, vector: list[float] | None) -> list[Ranked]:
    maker = token_maker(actor.tenant_id)
    condition = narrowing(maker, search)
    question = question_of(maker, search.query)
    surveyed = survey(actor, question, seen_namespaces(actor, search))
    if not surveyed.namespaces:
        return []
    visible = Cube.objects.visible_to(actor).filter(states(search), namespace_id__in=surveyed.namespaces)
    visible = visible.filter(condition).exclude(search.excluded)
    if search.mode is SearchMode.TAG:
        found = _by_tag(visible, search)
    else:
        found = rank(
            actor,
            question=question,
            spans=spans_of(search.query, surveyed.now),
            surveyed=surveyed,
            visible=visible,
            narrowed=bool(condition),
            vector=vector,
            model=embedder().name,
            weights=MODES[search.mode],
            limit=search.top_k,
        )
        found += _newest(visible, found, search.top_k - len(found))
    return [row for row in found if row.score >= search.min_score]


def _newest(visible: CubeQuerySet, found: list[Ranked], missing: int) -> list[Ranked]:
    """What nothing speaks for, the newest first, so that a search returns as many rows as there are."""
    if missing <= 0:
        return []
    shown: list[UUID] = [row.cube_id for row in found]
    rest = visible.exclude(id__in=shown).order_by("-id").values_list("id", flat=True)[:missing]
    return [Ranked(cube_id, 0.0, NO_PARTS) for cube_id in rest]


def _by_tag(visible: CubeQuerySet, search: SearchQuery) -> list[Ranked]:
    """Cubes that bear a tag which the query names; score: the share of the query's words that are tags of the cube."""
    words = list(dict.fromkeys([search.query.strip(), *search.query.split()]))[:MOST_TERMS]
    rows = visible.filter(tags__overlap=words).order_by("-id").values_list("id", "tags")
    asked = max(1, len(search.query.split()))
    found = [(cube_id, min(1.0, len(set(tags) & set(words)) / asked)) for cube_id, tags in rows]
    found.sort(key=lambda row: -row[1])
    return [Ranked(cube_id, score, NO_PARTS) for cube_id, score in found[: search.top_k]]
