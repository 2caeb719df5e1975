"""HNSW indexes of vectors, one per model. Migrations create the index of the default model, operators create the
others."""

from hashlib import sha256

from django.db import connection
from psycopg import sql

from governance.errors import Conflict

DEFAULT_MODEL = "universal-sentence-encoder/multilingual-3"  # embedding_nearest indexes its vectors
DEFAULT_DIMENSION = 512
LARGEST_DIMENSION = 4_000  # pgvector's limit for HNSW on half-precision vectors
OWNS = "SELECT pg_get_userbyid(relowner) = current_user FROM pg_class WHERE oid = 'vault_embedding'::regclass"
# The index supports `<=>` only on the column cast to a vector of this dimension.
NEAREST = "(vector::halfvec({dimension})) <=> %(vector)s::halfvec({dimension})"
READY = """
SELECT index.indisvalid FROM pg_index AS index JOIN pg_class AS named ON named.oid = index.indexrelid
WHERE index.indrelid = 'vault_embedding'::regclass AND named.relname = %s
"""
CREATE = """
CREATE INDEX CONCURRENTLY {name} ON vault_embedding USING hnsw ((vector::halfvec({dimension})) halfvec_cosine_ops)
WHERE model = {model}
"""


def nearest_by_index(model: str, dimension: int | None) -> str | None:
    """Return the SQL expression of the distance that the index of `model` supports; None without such an index.

    dimension: of the question's vector; None: the question has no vector. One query; none for the default model.
    """
    if model == DEFAULT_MODEL:
        return NEAREST.format(dimension=DEFAULT_DIMENSION)
    if dimension is None or not _read_validity(vector_index_name(model)):
        return None
    return NEAREST.format(dimension=dimension)


def vector_index_create(*, model: str, dimension: int) -> bool:
    """Create the index of `model` without blocking searches and writes; return False if it exists.

    Must run outside any transaction. An index left by an interrupted run is created again. Raises Conflict if the
    database role does not own the tables, or the vectors are too long.
    """
    if dimension > LARGEST_DIMENSION:
        raise Conflict(f"Vectors of {dimension} numbers cannot be indexed: {LARGEST_DIMENSION} is the most.")
    name = vector_index_name(model)
    validity = _read_validity(name)
    if validity:
        return False
    _refuse_other_roles()
    if validity is False:
        _run(sql.SQL("DROP INDEX CONCURRENTLY {name}").format(name=sql.Identifier(name)))
    _run(sql.SQL(CREATE).format(name=sql.Identifier(name), dimension=sql.Literal(dimension), model=sql.Literal(model)))
    return True


def vector_index_name(model: str) -> str:
    if model == DEFAULT_MODEL:
        return "embedding_nearest"
    return f"embedding_nearest_{sha256(model.encode()).hexdigest()[:12]}"


def _read_validity(name: str) -> bool | None:
    """Return whether the index is valid; None if it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(READY, [name])
        row = cursor.fetchone()
    return None if row is None else bool(row[0])


def _refuse_other_roles() -> None:
    with connection.cursor() as cursor:
        cursor.execute(OWNS)
        (owns,) = cursor.fetchone()
    if not owns:
        raise Conflict("Only the owner of the tables can make an index: run it with MEMOS_DATABASE_ROLE=owner.")


def _run(statement: sql.Composed) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement.as_string(cursor.connection))
