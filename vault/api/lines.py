"""Memories as JSON Lines, sent in parts."""

import json
from collections.abc import AsyncIterator, Iterator
from itertools import chain, islice

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

from governance.actor import Actor
from governance.denials import record_and_return_denial
from governance.errors import Forbidden
from vault.api.representations import memory_json
from vault.cubes.selectors import CubeView


def lines_response(parts: Iterator[list[CubeView]], *, actor: Actor, path: str) -> StreamingHttpResponse:
    """Return a download with one memory per line. Each part is read after the one before was sent; the first part here.

    An error in the first part is raised here. A later denial is recorded for `actor` and breaks the connection, so that
    clients do not take an incomplete file for the whole.
    """
    first = list(islice(parts, 1))
    return StreamingHttpResponse(
        _encode_lines(chain(first, parts), actor, path),
        content_type="application/jsonl",
        headers={"Content-Disposition": 'attachment; filename="memories.jsonl"', "Cache-Control": "no-store"},
    )


async def _encode_lines(parts: Iterator[list[CubeView]], actor: Actor, path: str) -> AsyncIterator[bytes]:
    while (views := await sync_to_async(_next_part, thread_sensitive=True)(parts, actor, path)) is not None:
        yield b"".join(json.dumps(memory_json(view), ensure_ascii=False).encode() + b"\n" for view in views)


def _next_part(parts: Iterator[list[CubeView]], actor: Actor, path: str) -> list[CubeView] | None:
    try:
        return next(parts, None)
    except Forbidden as denial:
        raise record_and_return_denial(actor=actor, denial=denial, path=path) from denial
