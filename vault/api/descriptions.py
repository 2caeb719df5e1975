"""Descriptions of calls that read or write memories, in the OpenAPI document."""

from functools import partial

from governance.api.described import described

MEMORIES = "/api/v1/memories/"

of_memories = partial(described, memories=True)
"""`described`, with the headers that name purpose, session and task of the call."""
