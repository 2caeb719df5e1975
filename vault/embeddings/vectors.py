"""Vectors of a tenant's memories, and the models that made them.

A tenant may have vectors of two models: the *active* one, which searches use, and the configured one. They differ
between a change of MEMOS_EMBEDDER and the switch at the end of a move (docs/decisions/0009).
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F

from governance.actor import Actor, system_actor
from governance.errors import Unavailable
from governance.outbox.services import emit
from governance.prepared import prepared_cursor, sql_array
from governance.vocabulary import Topic
from vault.content.blobs import blob_ref
from vault.content.words import NO_WORDS, words_open
from vault.embeddings.passages import mean_vectors, split_passages
from vault.index.facets import INDEXED_FIELDS, LAYERS, indexed_fields
from vault.index.terms import searchable_text
from vault.models.cube import Cube, CubeVersion
from vault.models.embedding_model import EmbeddingModel
from vault.models.index import WHOLE, Embedding
from vault.providers.ports import Embedder, ProviderUnavailable
from vault.providers.registry import embedder, embedder_by_name, vector_index
from vault.vocabulary import Layer

logger = logging.getLogger(__name__)
ANNOUNCED = 200  # cubes that one event names
# The event is for the index outside PostgreSQL, if the tenant has one.
DELETE = """
WITH gone AS (
  DELETE FROM vault_embedding WHERE tenant_id = %s AND cube_id = ANY(%s::uuid[]){versions} RETURNING 1
)
SELECT EXISTS (SELECT FROM vault_embeddingmodel WHERE tenant_id = %s AND vector_index <> '') AND EXISTS (
  SELECT FROM gone)
"""


RENEW = """
UPDATE vault_embedding AS vector SET version = entry.version, namespace_id = entry.namespace_id, layer = entry.layer,
  type = entry.type, persona_id = entry.persona_id, happened_at = entry.happened_at
FROM unnest(%s::uuid[], %s::integer[], %s::integer[], %s::uuid[], %s::integer[], %s::integer[], %s::uuid[],
  %s::timestamptz[]) AS entry (cube_id, former, version, namespace_id, layer, type, persona_id, happened_at)
WHERE vector.tenant_id = %s AND vector.cube_id = entry.cube_id AND vector.version = entry.former
"""


@dataclass(frozen=True)
class Text:
    """The text of a version to embed. indexed: values of INDEXED_FIELDS."""

    cube_id: UUID
    version: int
    indexed: Mapping[str, Any]
    text: str = field(repr=False)


def active_model(actor: Actor) -> str | None:
    """Return the model whose vectors searches use; None before the tenant's first vector. Use inside a transaction."""
    return EmbeddingModel.objects.filter(tenant_id=actor.tenant_id).values_list("model", flat=True).first()


def active_model_hold(actor: Actor, *, expected: str | None, first: str) -> None:
    """Lock the active model until the transaction ends. first: the model to activate if the tenant has none.

    Raises Unavailable if the active model is not `expected`, because it was switched meanwhile.
    """
    if expected is None:
        index = vector_index()
        named = {"vector_index": index.name, "is_index_filled": True} if index else {}  # there is nothing to copy yet
        row = EmbeddingModel(tenant_id=actor.tenant_id, model=first, **named)
        EmbeddingModel.objects.bulk_create([row], ignore_conflicts=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT model FROM vault_embeddingmodel WHERE tenant_id = %s FOR SHARE", [actor.tenant_id])
        (held,) = cursor.fetchone()
    if held != (expected or first):
        raise Unavailable("The tenant's embedding model was switched meanwhile; the job runs again.")


def question_embedder(active: str | None) -> Embedder:
    """Return the embedder of the active model, or the configured one if this process cannot build the active model.

    In the second case, only lexical search finds memories that the configured model has not embedded.
    """
    former = embedder_by_name(active) if active is not None else None
    return former or embedder()


def texts_of(cube_ids: Sequence[UUID]) -> list[Text]:
    """Return the texts to embed of those cubes that still exist and were not redacted."""
    texts: list[Text] = []
    rows = CubeVersion.objects.filter(cube_id__in=cube_ids, cube__is_indexed=True, cube__is_cold=False)
    rows = rows.filter(number=F("cube__version"))
    for version in rows.select_related("cube"):
        cube, sealed = version.cube, bytes(version.sealed)
        if sealed:
            words = words_open(tenant_id=cube.tenant_id, cube_id=cube.id, number=version.number, blob=sealed)
            texts.append(Text(cube.id, version.number, indexed_fields(cube), searchable_text(words)))
    return texts


def find_current_vectors(actor: Actor, active: str | None, texts: Sequence[Text]) -> dict[UUID, int]:
    """Return the memories whose vectors were made of the same text, with the version that they were made of.

    They have one by each model that searches use. Use inside a transaction. Raises KeyUnavailable.
    """
    configured = embedder().name
    models = {configured} | ({active} if active and embedder_by_name(active) is not None else set())
    stored = Embedding.objects.filter(tenant_id=actor.tenant_id, part=WHOLE, model__in=models)
    found: dict[UUID, list[int]] = {}
    for cube_id, version in stored.filter(cube_id__in=[text.cube_id for text in texts]).values_list(
        "cube_id", "version"
    ):
        found.setdefault(cube_id, []).append(version)
    former = {
        cube_id: numbers[0]
        for cube_id, numbers in found.items()
        if len(numbers) == len(models) and len(set(numbers)) == 1
    }
    rows = CubeVersion.objects.filter(cube_id__in=former, number__in=set(former.values()))
    words = {row.cube_id: _open_here(actor.tenant_id, row) for row in rows if former[row.cube_id] == row.number}
    return {
        text.cube_id: former[text.cube_id]
        for text in texts
        # Vectors of the present version are asked for again where some are missing.
        if former.get(text.cube_id, text.version) != text.version and words.get(text.cube_id) == text.text
    }


def _open_here(tenant_id: UUID, row: CubeVersion) -> str | None:
    """Return the text of a version that is in the database; None for one in the blob store, or without words."""
    sealed = bytes(row.sealed)
    if blob_ref(tenant_id=tenant_id, cube_id=row.cube_id, number=row.number, stored=sealed) is not None:
        return None
    words = words_open(tenant_id=tenant_id, cube_id=row.cube_id, number=row.number, blob=sealed)
    return None if words == NO_WORDS else searchable_text(words)


def embeddings_renew(actor: Actor, texts: Sequence[Text], former: Mapping[UUID, int]) -> list[UUID]:
    """Let vectors of the same text count for the present versions; return the ids of these memories. One statement.

    former: as `find_current_vectors` returns it.
    """
    if not former:
        return []
    layers = _lock_present({text.cube_id for text in texts})  # also those of `embeddings_write`, in one order
    current = [text for text in texts if text.cube_id in former and (text.cube_id, text.version) in layers]
    if not current:
        return []
    ids = [text.cube_id for text in current]
    fields = [[text.indexed[name] for text in current] for name in INDEXED_FIELDS]
    fields[INDEXED_FIELDS.index("layer")] = [LAYERS[Layer(layers[text.cube_id, text.version])] for text in current]
    numbers = [[former[cube_id] for cube_id in ids], [text.version for text in current]]
    with connection.cursor() as cursor:
        cursor.execute(RENEW, [ids, *numbers, *fields, actor.tenant_id])
    if has_vector_index(actor.tenant_id):
        announce_changes(actor.tenant_id, ids)
    return ids


def _lock_present(cube_ids: Collection[UUID]) -> dict[tuple[UUID, int], str]:
    """Lock the memories that have vectors; return their layers by id and present version."""
    named = Cube.objects.filter(id__in=cube_ids, is_indexed=True, is_cold=False).order_by("id")
    locked = named.select_for_update(no_key=True).values_list("id", "version", "layer")
    return {(cube_id, number): layer for cube_id, number, layer in locked}


def make_embeddings(actor: Actor, model: Embedder, texts: Sequence[Text]) -> list[Embedding]:
    """Embed texts, and the passages of long ones, into unsaved rows.

    Must run outside any transaction, because it calls the model. Raises ProviderUnavailable.
    """
    if not texts:
        return []
    passages = [split_passages(text.text) for text in texts]
    pieces = [parts or [text.text] for text, parts in zip(texts, passages, strict=True)]
    vectors = model.embed([piece for parts in pieces for piece in parts])
    wholes = mean_vectors(vectors, [len(parts) for parts in pieces])
    made, at = [], 0
    for text, parts, whole in zip(texts, passages, wholes, strict=True):
        named = {"tenant_id": actor.tenant_id, "cube_id": text.cube_id, "model": model.name, "version": text.version}
        made.append(Embedding(vector=whole, **named, **text.indexed))
        made += [
            Embedding(part=part, vector=vectors[at + part - 1], **named, **text.indexed)
            for part in range(1, len(parts) + 1)
        ]
        at += len(parts) or 1
    return made


def make_all_embeddings(actor: Actor, active: str | None, texts: Sequence[Text]) -> list[Embedding]:
    """Embed texts with the configured model, and with the active model if it is another one and still available.

    Errors of the active model are only logged, since the switch does not need its vectors. Raises ProviderUnavailable.
    """
    configured = embedder()
    vectors = make_embeddings(actor, configured, texts)
    former = embedder_by_name(active) if active not in {None, configured.name} else None
    if former is None:
        return vectors
    try:
        return vectors + make_embeddings(actor, former, texts)
    except ProviderUnavailable as error:
        logger.warning("the former embedder %s is left out: %s", former.name, error.detail)
        return vectors


def embeddings_write(rows: Sequence[Embedding]) -> list[UUID]:
    """Store the vectors of cubes whose embedded version is still the present one; return the ids of these cubes."""
    # Locked: a memory that is being deleted must not get its vector back.
    layers = _lock_present({row.cube_id for row in rows})
    current = [row for row in rows if (row.cube_id, row.version) in layers]
    for row in current:  # the page of a message may have moved since it was read
        row.layer = LAYERS[Layer(layers[row.cube_id, row.version])]
    cubes, models = {row.cube_id for row in current}, {row.model for row in current}
    Embedding.objects.filter(cube_id__in=cubes, model__in=models, part__gt=WHOLE).delete()  # it may have fewer now
    Embedding.objects.bulk_create(
        current,
        update_conflicts=True,
        unique_fields=["tenant_id", "cube_id", "model", "part"],
        update_fields=["version", "vector", *INDEXED_FIELDS],
    )
    ids = list(dict.fromkeys(row.cube_id for row in current))
    if current and has_vector_index(current[0].tenant_id):
        announce_changes(current[0].tenant_id, ids)
    return ids


def embeddings_delete(tenant_id: UUID, cube_ids: Collection[UUID], versions: Collection[int] | None = None) -> None:
    """Delete the vectors of memories, or those of some versions. One statement. Writes: OutboxEvent …?."""
    if not cube_ids:
        return
    statement = DELETE.format(versions="" if versions is None else " AND version = ANY(%s::integer[])")
    chosen = [] if versions is None else [sql_array(versions)]
    with prepared_cursor() as cursor:
        cursor.execute(statement, [tenant_id, sql_array(cube_ids), *chosen, tenant_id])
        (is_copied,) = cursor.fetchone()
    if is_copied:
        announce_changes(tenant_id, cube_ids)


def has_vector_index(tenant_id: UUID) -> bool:
    """Return whether an index outside PostgreSQL gets copies of the tenant's vectors. One query."""
    return EmbeddingModel.objects.filter(tenant_id=tenant_id).exclude(vector_index="").exists()


def announce_changes(tenant_id: UUID, cube_ids: Collection[UUID]) -> None:
    """Ask a job to copy the vectors of these memories, as they are then, to the vector index. Writes: OutboxEvent …."""
    actor, ids = system_actor(tenant_id=tenant_id, request_id="vectors"), [str(cube_id) for cube_id in cube_ids]
    for start in range(0, len(ids), ANNOUNCED):
        emit(actor=actor, topic=Topic.VECTORS_CHANGED, payload={"ids": ids[start : start + ANNOUNCED]})
