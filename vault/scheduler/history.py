"""The memories and turns of a persona, as predictors and replays read them: ids, numbers and vectors, no text."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import numpy as np
from django.db.models import BinaryField, F, Func, Q, QuerySet

from governance.actor import Actor
from governance.models import Persona
from vault.embeddings.vectors import active_model
from vault.models import Cube, CubeLink, Embedding, Page, Turn
from vault.models.index import WHOLE
from vault.models.namespace import NAMED_OR_MOUNTED
from vault.providers.ports import Matrix
from vault.retrieval.queries import SHOWN
from vault.scheduler.rules import Candidate, Memories, PastTurn
from vault.vocabulary import EXTRACTIVE, LinkKind, SemanticType

MOST_CANDIDATES = 2_000  # memories that are looked at for one turn: the newest, and those that the last turns found
PACKED = Func(F("vector"), function="halfvec_send", output_field=BinaryField())  # a tenth of the time of its text
PACKED_HEADER = 4  # bytes
RELATED = (LinkKind.FOLLOWS, LinkKind.CAUSES, LinkKind.CONTRADICTS, LinkKind.PARENT)


def load_turns(actor: Actor, persona_id: UUID, *, latest: int, stream_id: UUID | None = None) -> list[PastTurn]:
    """Return the latest turns of a persona, oldest first, of one of its streams or of all. Two queries."""
    rows = Page.objects.filter(tenant_id=actor.tenant_id, stream__persona_id=persona_id)
    rows = rows.filter(stream_id=stream_id) if stream_id else rows
    named = rows.order_by("-id").values("id", "at", "chain", "query_id", packed=PACKED)
    pages = list(reversed(named[:latest]))
    asked = [page["query_id"] for page in pages if page["query_id"]]
    turns = Turn.objects.filter(tenant_id=actor.tenant_id, question_id__in=asked)
    known = {turn["question_id"]: turn for turn in turns.values("question_id", "citations", "retrieved")}
    return [_make_turn(page, known.get(page["query_id"])) for page in pages]


def load_memories(actor: Actor, persona_id: UUID, turns: Sequence[PastTurn], rows: QuerySet[Cube]) -> Memories:
    """Return the memories of a persona that may be preloaded: no answers that only quote others. rows: those to which
    the caller limits them.

    Three queries, or four with links.
    """
    member_id = Persona.objects.filter(id=persona_id).values_list("member_id", flat=True).first()
    own = Q(persona_id=persona_id) | (Q(owner_id=member_id, persona_id=None) if member_id else Q())
    found = rows.filter(state__in=SHOWN, is_indexed=True, deleted_at=None, is_quarantined=False)
    found = found.exclude(superseded_by__isnull=False, valid_to__isnull=False)
    found = found.exclude(id__in=Turn.objects.filter(model=EXTRACTIVE, answer_id__isnull=False).values("answer_id"))
    own &= ~Q(namespace__kind__in=NAMED_OR_MOUNTED)  # of those, only what a turn found
    newest = list(found.filter(own).order_by("-id").values_list("id", flat=True)[:MOST_CANDIDATES])
    named = {cube_id for turn in turns for cube_id in (*turn.used, *turn.found)}
    wanted = found.filter(id__in=named.union(newest))
    names = ("id", "token_count", "said_at", "created_at", "event_time", "importance", "priority", "tags")
    cubes = list(wanted.values(*names, "session_token", "position", "semantic_type"))
    vectors = _load_vectors(actor, [cube["id"] for cube in cubes])
    return Memories([_make_candidate(cube, vectors.get(cube["id"])) for cube in cubes], _load_links(turns))


def _make_turn(page: Mapping[str, Any], turn: Mapping[str, Any] | None) -> PastTurn:
    cited = [UUID(citation["memory_id"]) for citation in turn["citations"]] if turn else []
    # What the working set brought into a prompt is no result of the search.
    retrieved = [row for row in turn["retrieved"] if not row.get("tier")] if turn else []
    return PastTurn(
        at=page["at"],
        vector=_unit(page["packed"]),
        used=frozenset(cited),
        found=tuple(UUID(row["memory_id"]) for row in retrieved),
        is_new_topic=page["chain"] == page["id"],
    )


def _make_candidate(cube: Mapping[str, Any], packed: bytes | None) -> Candidate:
    place = cube["session_token"], cube["position"]
    is_ahead = cube["semantic_type"] in {SemanticType.GOAL, SemanticType.EVENT} and cube["event_time"]
    return Candidate(
        id=cube["id"],
        tokens=cube["token_count"],
        at=cube["said_at"] or cube["created_at"],
        vector=_unit(packed),
        importance=cube["importance"],
        priority=cube["priority"],
        tags=frozenset(cube["tags"]),
        place=place if None not in place else None,
        due=cube["event_time"] if is_ahead else None,
    )


def _load_vectors(actor: Actor, cube_ids: Sequence[UUID]) -> dict[UUID, bytes]:
    rows = Embedding.objects.filter(tenant_id=actor.tenant_id, model=active_model(actor) or "", part=WHOLE)
    return dict(rows.filter(cube_id__in=cube_ids).values_list("cube_id", PACKED))


def _load_links(turns: Iterable[PastTurn]) -> dict[UUID, list[UUID]]:
    """Return the neighbours in the graph of the memories that answers cite."""
    used = {cube_id for turn in turns for cube_id in turn.used}
    links: dict[UUID, list[UUID]] = defaultdict(list)
    if used:
        rows = CubeLink.objects.filter(Q(source_id__in=used) | Q(target_id__in=used), kind__in=RELATED)
        for source, target in rows.order_by("id").values_list(F("source_id"), F("target_id")):
            links[source].append(target)
            links[target].append(source)
    return links


def _unit(packed: bytes | None) -> Matrix | None:
    """Return a packed vector, scaled to length 1."""
    if packed is None:
        return None
    values = np.frombuffer(packed, dtype=">f2", offset=PACKED_HEADER).astype(np.float32)
    return cast(Matrix, values / max(float(np.linalg.norm(values)), 1e-9))
