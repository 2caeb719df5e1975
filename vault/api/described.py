"""Descriptions of calls that read or write memories, in the OpenAPI document."""

from functools import partial

from governance.api.described import described

of_memories = partial(described, memories=True)
"""`described`, with the header that names the purpose of the call."""
