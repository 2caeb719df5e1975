"""A file as a response, sent in blocks."""

from collections.abc import AsyncIterator
from pathlib import Path

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

BLOCK = 256 * 1024


def file_response(path: Path, name: str) -> StreamingHttpResponse:
    """Return the zip file at `path` as a download named `name`."""
    return StreamingHttpResponse(
        _blocks(path),
        content_type="application/zip",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(path.stat().st_size),
            "Cache-Control": "no-store",
        },
    )


async def _blocks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while block := await sync_to_async(file.read, thread_sensitive=False)(BLOCK):
            yield block
