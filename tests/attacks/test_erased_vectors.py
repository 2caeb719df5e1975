"""Compare every vector that is left with the vectors and the words of an erased data subject (row 8)."""

from base64 import b64decode
from collections.abc import Callable, Sequence

import numpy as np
import psycopg
from numpy.typing import NDArray

from tests.attacks.test_copies_follow import ask_question
from tests.attacks.test_erased_subject import CANARY, QUESTION, REFERENCE, store_memories
from tests.factories import World
from tests.harness.evidence import Evidence
from tests.vault.api.contract import contract
from tests.vault.outbox import run_jobs
from vault.providers.registry import embedder

Superuser = Callable[[], psycopg.Connection]
Vectors = NDArray[np.float32]
COLUMNS = """
SELECT attrelid::regclass::text, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE atttypid = 'halfvec'::regtype AND relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
QUESTIONS = "SELECT payload->'question'->>'vector' FROM governance_outboxevent WHERE payload ? 'question'"
TURNS = 9  # more than a persona's queue has room for: the oldest pages are in a segment
NEAR, FAR = 0.99, 0.9  # cosine with a memory's vector
HEARD, UNHEARD = 0.25, 0.1  # cosine with the vector of one of its words


def list_vectors(connection: psycopg.Connection) -> dict[str, Vectors]:
    """Every vector of the database by column, and those of questions in events; each of length 1."""
    left: dict[str, Vectors] = {}
    for table, column in connection.execute(COLUMNS).fetchall():
        rows = connection.execute(
            f"SELECT {column}::vector::real[] FROM {table} WHERE {column} IS NOT NULL".encode()
        ).fetchall()
        left[f"{table}.{column}"] = _of_length_one([row[0] for row in rows])
    packed = [b64decode(row[0]) for row in connection.execute(QUESTIONS).fetchall()]
    left["questions"] = _of_length_one(
        [np.frombuffer(vector, dtype="<f2").astype(np.float32).tolist() for vector in packed]
    )
    return left


def _of_length_one(rows: Sequence[Sequence[float]] | Vectors) -> Vectors:
    vectors = np.asarray(rows, dtype=np.float32)
    if not len(vectors):
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


def nearest(left: dict[str, Vectors], wanted: Vectors) -> dict[str, float]:
    """By column the highest cosine of a vector with one of those that are looked for."""
    return {name: round(float((vectors @ wanted.T).max()), 3) for name, vectors in left.items() if len(vectors)}


def test_no_vector_that_is_left_is_near_an_erased_one(
    world: World, superuser: Superuser, evidence: Evidence, full_size: bool
) -> None:
    alice, olivia, connection = contract(world, "alice"), contract(world, "olivia"), superuser()
    alice.add("The otter swims at night.", namespace="/team")
    ids = store_memories(alice, 20 if full_size else 4)
    run_jobs()
    turns = ask_question(alice, QUESTION, model="extractive")
    for _ in range(TURNS - 1):
        assert alice.post(turns, {"content": QUESTION}).status == 201
    run_jobs()
    rows = connection.execute(
        "SELECT vector::vector::real[] FROM vault_embedding WHERE cube_id = ANY(%s)", [ids]
    ).fetchall()
    erased, word = _of_length_one([row[0] for row in rows]), _of_length_one(embedder().embed([CANARY]))
    before = list_vectors(connection)
    assert max(nearest(before, erased).values()) >= NEAR
    assert max(nearest(before, word).values()) >= HEARD
    subject = olivia.get(f"subjects/?reference={REFERENCE}").json["results"][0]["id"]
    assert olivia.post(f"subjects/{subject}/erase/").status == 202
    run_jobs()
    after = list_vectors(connection)
    assert sum(len(vectors) for vectors in after.values()), "others are left"
    memories, words = nearest(after, erased), nearest(after, word)
    assert max(memories.values()) < FAR, memories
    assert max(words.values()) < UNHEARD, words
    figures = {
        "memories about the subject": len(ids),
        "vectors before": sum(len(vectors) for vectors in before.values()),
        "vectors left": sum(len(vectors) for vectors in after.values()),
        "highest cosine of one with an erased memory": max(memories.values()),
        "highest cosine of one with a word of theirs": max(words.values()),
        "the same before the erasure": max(nearest(before, word).values()),
    }
    evidence(row=8, name="erased-vectors", figures=figures)
