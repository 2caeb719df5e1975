"""Vectors as values of statements."""

import psycopg
from pgvector import HalfVector
from pgvector.psycopg.halfvec import HalfVectorBinaryDumper, HalfVectorDumper


def bind_halfvectors() -> None:
    """Before the first connection of the process. As bytes, where they can be sent, they cost a hundredth of text.

    Their type is left to the statement (`oid` 0): its number is another in each database.
    """
    psycopg.adapters.register_dumper(HalfVector, HalfVectorDumper)
    psycopg.adapters.register_dumper(HalfVector, HalfVectorBinaryDumper)
