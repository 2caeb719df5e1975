"""Descriptions of calls that read or write memories, in the OpenAPI document."""

from functools import partial

from governance.api.descriptions import describe

MEMORIES = "/api/v1/memories/"

of_memories = partial(describe, memories=True)
"""`describe`, with the headers that name purpose, session and task of the call."""
