"""Half-precision vectors as parameters of statements."""

import psycopg
from pgvector import HalfVector
from pgvector.psycopg.halfvec import HalfVectorBinaryDumper, HalfVectorDumper


def bind_halfvectors() -> None:
    """Register the vectors with psycopg, in binary where possible, which costs a hundredth of text.

    Call it before the first connection of the process. The statement names the type (`oid` 0), whose number differs
    between databases.
    """
    psycopg.adapters.register_dumper(HalfVector, HalfVectorDumper)
    psycopg.adapters.register_dumper(HalfVector, HalfVectorBinaryDumper)
