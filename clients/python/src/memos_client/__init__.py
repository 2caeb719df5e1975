"""A typed client of MemOS Web: `Memos`, and `AsyncMemos` with the same methods to await."""

from memos_client.aio import AsyncMemos
from memos_client.blocking import Memos
from memos_client.errors import (
    ApiError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Held,
    InvalidKey,
    MemosError,
    NotFound,
    RateLimited,
    ServerError,
    VersionConflict,
)
from memos_client.models import Answer, Citation, Context, Conversation, Memory, Namespace, StreamEvent, Version

__all__ = [
    "Answer",
    "ApiError",
    "AsyncMemos",
    "BadRequest",
    "Citation",
    "Conflict",
    "ConnectionFailed",
    "Context",
    "Conversation",
    "Forbidden",
    "Held",
    "InvalidKey",
    "Memory",
    "Memos",
    "MemosError",
    "Namespace",
    "NotFound",
    "RateLimited",
    "ServerError",
    "StreamEvent",
    "Version",
    "VersionConflict",
]
