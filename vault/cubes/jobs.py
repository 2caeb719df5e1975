"""What follows a write or a read, run from the outbox: vectors, and counts of use."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection
from django.db.models import F

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.outbox.services import Payload, Write
from governance.vocabulary import Verb
from vault.cubes.rules import searchable
from vault.cubes.words import words_open
from vault.models import Cube, CubeVersion, Embedding
from vault.providers.registry import embedder

CHEAP_TO_COUNT = 5_000  # cubes; a larger namespace is not counted again within FRESH_SECONDS
FRESH_SECONDS = 2.0
MEASURE = """
INSERT INTO vault_namespacesize (tenant_id, namespace_id, cubes, words, refreshed_at)
SELECT cube.tenant_id, cube.namespace_id, count(*), sum(cube.term_count), clock_timestamp()
FROM vault_cube AS cube
WHERE cube.deleted_at IS NULL AND cube.namespace_id = ANY(
  SELECT wanted FROM unnest(%s::uuid[]) AS wanted WHERE NOT EXISTS (
    SELECT 1 FROM vault_namespacesize AS size WHERE size.namespace_id = wanted
      AND size.cubes > %s AND size.refreshed_at > clock_timestamp() - make_interval(secs => %s)))
GROUP BY cube.tenant_id, cube.namespace_id ORDER BY cube.namespace_id
ON CONFLICT (tenant_id, namespace_id) DO UPDATE
SET cubes = excluded.cubes, words = excluded.words, refreshed_at = excluded.refreshed_at
"""
COUNT_READS = """
INSERT INTO vault_cubeuse (tenant_id, cube_id, access_count, last_accessed_at, heat)
SELECT cube.tenant_id, cube.id, entry.reads, transaction_timestamp(), 0
FROM unnest(%s::uuid[], %s::integer[]) AS entry (id, reads) JOIN vault_cube AS cube ON cube.id = entry.id
ORDER BY cube.id
ON CONFLICT (tenant_id, cube_id) DO UPDATE
SET access_count = vault_cubeuse.access_count + excluded.access_count, last_accessed_at = excluded.last_accessed_at
"""


@dataclass(frozen=True)
class _Text:
    cube_id: UUID
    version: int
    namespace_id: UUID
    text: str = field(repr=False)


def cubes_index(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Embed the present words of the cubes that were written. The model is asked outside any transaction."""
    with acting(actor):
        texts = _present_texts(ids_of(payloads))
    model = embedder()
    vectors = model.embed([text.text for text in texts])
    rows = [
        Embedding(
            tenant_id=actor.tenant_id,
            cube_id=text.cube_id,
            model=model.name,
            version=text.version,
            namespace_id=text.namespace_id,
            vector=vector,
        )
        for text, vector in zip(texts, vectors, strict=True)
    ]

    def write() -> None:
        # Locked: a memory that is being deleted must not get its vector back.
        named = Cube.objects.filter(id__in=[row.cube_id for row in rows], deleted_at=None).order_by("id")
        present = set(named.select_for_update(no_key=True).values_list("id", "version"))
        Embedding.objects.bulk_create(
            [row for row in rows if (row.cube_id, row.version) in present],
            update_conflicts=True,
            unique_fields=["tenant_id", "cube_id", "model"],
            update_fields=["version", "namespace_id", "vector"],
        )
        _measure({row.namespace_id for row in rows})
        ids = [cube_id for cube_id, _ in present]
        record(actor=actor, verb=Verb.MEMORY_INDEXED, object_type="memory", object_ids=ids)

    return write


def cubes_count_reads(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Count each request in which a cube was returned, once."""
    reads: dict[UUID, int] = {}
    for payload in payloads:
        for cube_id in ids_of([payload]):
            reads[cube_id] = reads.get(cube_id, 0) + 1

    def write() -> None:
        with connection.cursor() as cursor:
            cursor.execute(COUNT_READS, [sorted(reads), [reads[cube_id] for cube_id in sorted(reads)]])

    return write


def ids_of(payloads: Sequence[Payload]) -> list[UUID]:
    """The cubes that some events name, each once, in order."""
    named: list[UUID] = []
    for payload in payloads:
        ids = payload["ids"]
        assert isinstance(ids, list)
        named += [UUID(one) for one in ids]
    return list(dict.fromkeys(named))


def _measure(namespaces: Collection[UUID]) -> None:
    """Count a namespace anew, unless that was done a moment ago."""
    with connection.cursor() as cursor:
        cursor.execute(MEASURE, [list(namespaces), CHEAP_TO_COUNT, FRESH_SECONDS])


def _present_texts(cube_ids: Sequence[UUID]) -> list[_Text]:
    """What to embed of the cubes that still exist."""
    present = set(Cube.objects.filter(id__in=cube_ids, deleted_at=None).values_list("id", flat=True))
    texts: list[_Text] = []
    for row in CubeVersion.objects.filter(cube_id__in=present, number=F("cube__version")):
        if row.sealed:
            words = words_open(tenant_id=row.tenant_id, cube_id=row.cube_id, number=row.number, blob=bytes(row.sealed))
            texts.append(_Text(row.cube_id, row.number, row.namespace_id, searchable(words)))
    return texts
