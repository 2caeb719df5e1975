"""Memories as JSON Lines, sent part by part."""

import json
from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

from vault.api.representations import memory_json
from vault.cubes.selectors import CubeView


def lines_response(parts: Iterator[list[CubeView]]) -> StreamingHttpResponse:
    """A file for download with one memory a line; each part is read when the one before was sent."""
    return StreamingHttpResponse(
        _lines(parts),
        content_type="application/jsonl",
        headers={"Content-Disposition": 'attachment; filename="memories.jsonl"', "Cache-Control": "no-store"},
    )


async def _lines(parts: Iterator[list[CubeView]]) -> AsyncIterator[bytes]:
    while (views := await sync_to_async(lambda: next(parts, None), thread_sensitive=True)()) is not None:
        yield b"".join(json.dumps(memory_json(view), ensure_ascii=False).encode() + b"\n" for view in views)
