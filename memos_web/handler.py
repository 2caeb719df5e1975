"""Serves requests in threads that are kept.

Django's own ASGI handler makes a thread for each request, and with it what each thread needs of a database connection,
and goes back and forth between the event loop and that thread a dozen times. All views here are plain functions, so
that a request needs its thread once; docs/decisions/0019 tells what that is worth. A response that streams goes on in
the thread of its request.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import IO, Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

KEPT = 20  # idle threads; as many as the database has connections for


class ThreadedHandler(ASGIHandler):
    """An ASGI application. As many requests run at once as come; up to KEPT threads wait for the next ones."""

    def __init__(self) -> None:
        self.load_middleware(is_async=False)
        self._idle: deque[ThreadPoolExecutor] = deque()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served, not {scope['type']}")
        async with self._thread() as thread, ThreadSensitiveContext(executor=thread):
            await self._handled(scope, receive, send)

    @asynccontextmanager
    async def _thread(self) -> AsyncIterator[ThreadPoolExecutor]:
        """A thread for one request: the last one that became idle, which is the likeliest to be warm."""
        thread = self._idle.pop() if self._idle else ThreadPoolExecutor(max_workers=1, thread_name_prefix="request")
        is_kept = False
        try:
            yield thread
            is_kept = len(self._idle) < KEPT
        finally:
            if is_kept:
                self._idle.append(thread)
            else:  # also where the request was cancelled: the thread may still be at it
                thread.shutdown(wait=False)

    async def _handled(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            set_script_prefix(get_script_prefix(scope))
            response = await sync_to_async(self._answered)(scope, body)
            if not response.streaming:
                await self.send_response(response, send)
                return
            try:
                await self._streamed(response, receive, send)
            finally:
                await sync_to_async(response.close)()

    def _answered(self, scope: Any, body: IO[bytes]) -> Any:
        """The response; closed already, and its database connection given back, unless it has yet to stream."""
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = self.__class__
        if not response.streaming:
            response.close()
        return response

    async def _streamed(self, response: HttpResponseBase, receive: Any, send: Any) -> None:
        """Send what comes, until it ends or nobody listens."""
        sending = asyncio.create_task(self.send_response(response, send))
        listening = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, listening):
                task.cancel()
            with suppress(asyncio.CancelledError, RequestAborted):
                await listening
            with suppress(asyncio.CancelledError):
                await sending
