"""Serves requests in threads that are kept.

Django's own ASGI handler makes a thread for each request, and with it what each thread needs of a database connection,
and goes back and forth between the event loop and that thread a dozen times. All views here are plain functions, so
that a request needs its thread once; docs/decisions/0019 tells what that is worth. A response that streams goes on in
the thread of its request. Requests at work and streams are bounded, in all and of each caller: beyond that
comes a short wait, then 503.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from io import BytesIO
from typing import IO, Any
from uuid import UUID

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from governance.api.authentication import body_limit
from governance.database import release_connection
from governance.errors import DomainError
from governance.transport import READER_LEFT
from memos_web.bodies import HeldBodies, add_length, read_body
from memos_web.callers import Callers, is_health_check
from memos_web.slots import Busy, Slot, Slots, send_busy

MOST_AT_WORK = 20  # requests, without streams; as many as the database has connections for
MOST_AT_WORK_EACH = 15
MOST_CHECKS = 2  # health checks: they are answered while all other slots are taken
STUCK_SECONDS = 120.0  # without a request that ends, while all slots are taken: the process should be replaced
QUEUE_EACH, QUEUE_SECONDS = 30, 2.0
MOST_STREAMS = 100  # they hold no connection while a model writes
MOST_STREAMS_EACH = 75


@dataclass
class _Worker:
    """The thread of one request, and the slot that it holds."""

    thread: ThreadPoolExecutor
    slots: Slots
    slot: Slot

    def give_slot(self) -> None:
        self.slots.give(self.slot)


class ThreadedHandler(ASGIHandler):
    """An ASGI application. Idle threads wait for the next requests; what is too much is answered 503."""

    def __init__(self) -> None:
        self.load_middleware(is_async=False)
        self._idle: deque[ThreadPoolExecutor] = deque()
        self._at_work = Slots(MOST_AT_WORK, each=MOST_AT_WORK_EACH, queue=QUEUE_EACH, seconds=QUEUE_SECONDS)
        self._checks = Slots(MOST_CHECKS, each=MOST_CHECKS, queue=QUEUE_EACH, seconds=QUEUE_SECONDS)
        self._streams = Slots(MOST_STREAMS, each=MOST_STREAMS_EACH)
        self._callers = Callers()
        self._bodies = HeldBodies()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served, not {scope['type']}")
        try:
            await self._serve(scope, receive, send)
        except Busy:
            await send_busy(scope, send)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        caller = self._callers.caller_of(scope)
        slots = self._checks if is_health_check(scope) else self._at_work
        if slots is self._checks and self._at_work.full_seconds() > STUCK_SECONDS:
            raise Busy
        with self._count_held_bytes(caller) as hold:
            refusal: DomainError | None = None
            body = BytesIO()
            try:
                body = await read_body(scope, receive, partial(self._ask_body_limit, scope, caller, slots), hold)
                scope = add_length(scope, body)
            except RequestAborted:
                return
            except DomainError as failure:
                refusal = failure
            async with self._take_worker(caller, slots) as worker, ThreadSensitiveContext(executor=worker.thread):
                await self._answer_request(scope, body, refusal, receive, send, worker)

    def count_body(self, scope: Any) -> AbstractContextManager[Callable[[int], None]]:
        """`_count_held_bytes` for the body of a request with an API key that another protocol answers."""
        return self._count_held_bytes(self._callers.caller_of({**scope, "path": "/api/", "root_path": ""}))

    @contextmanager
    def _count_held_bytes(self, caller: str) -> Iterator[Callable[[int], None]]:
        """Yield a function that a large body calls with its size; the size counts until the request has ended."""
        held: list[int] = []

        def hold(size: int) -> None:
            self._bodies.hold(caller, size)
            held.append(size)

        try:
            yield hold
        finally:
            self._bodies.release(caller, sum(held))

    async def _ask_body_limit(self, scope: Any, caller: str, slots: Slots) -> int:
        """Return the largest body in bytes that the caller may send, found by the headers in a separate thread."""
        async with self._take_worker(caller, slots) as worker, ThreadSensitiveContext(executor=worker.thread):
            return await sync_to_async(self._find_body_limit)(scope)

    def _find_body_limit(self, scope: Any) -> int:
        request, _ = self.create_request(scope, BytesIO())
        try:
            return body_limit(request) if request else settings.BODY_BYTES_UNAUTHENTICATED
        finally:
            release_connection()

    @asynccontextmanager
    async def _take_worker(self, caller: str, slots: Slots) -> AsyncIterator[_Worker]:
        """A thread for one request: the last one that became idle, which is the likeliest to be warm. Raises Busy."""
        slot = await slots.take(caller, quick=self._callers.quick_requests(caller))
        thread = self._idle.pop() if self._idle else ThreadPoolExecutor(max_workers=1, thread_name_prefix="request")
        worker = _Worker(thread, slots, slot)
        is_idle = False
        try:
            yield worker
            is_idle = True
        finally:
            self._release_worker(worker, is_idle=is_idle)

    def _release_worker(self, worker: _Worker, *, is_idle: bool) -> None:
        """A thread whose request was cancelled may still work: its slot is free once it has ended."""
        if is_idle and len(self._idle) < MOST_AT_WORK:
            self._idle.append(worker.thread)
            worker.give_slot()
            return
        worker.thread.submit(asyncio.get_running_loop().call_soon_threadsafe, worker.give_slot)
        worker.thread.shutdown(wait=False)

    async def _become_stream(self, worker: _Worker) -> None:
        """A stream holds a slot of its own kind. Raises Busy."""
        slot = await self._streams.take(worker.slot.caller, quick=MOST_STREAMS_EACH)
        worker.give_slot()
        worker.slots, worker.slot = self._streams, slot

    async def _answer_request(
        self,
        scope: Any,
        body: IO[bytes],
        refusal: DomainError | None,
        receive: Any,
        send: Any,
        worker: _Worker,
    ) -> None:
        reader_left = threading.Event()
        READER_LEFT.set(reader_left)  # for the calls to other servers that the stream waits for
        with body:
            set_script_prefix(get_script_prefix(scope))
            response, tenant_id = await sync_to_async(self._make_response)(scope, body, refusal)
            if tenant_id is not None:
                self._callers.learn(scope, tenant_id)
            elif response.status_code == HTTPStatus.UNAUTHORIZED:
                self._callers.forget(scope)
            if not response.streaming:
                await self.send_response(response, send)
                return
            try:
                await self._become_stream(worker)
                await self._send_stream(response, receive, send, reader_left)
            finally:
                await sync_to_async(response.close)()

    def _make_response(self, scope: Any, body: IO[bytes], refusal: DomainError | None) -> tuple[Any, UUID | None]:
        """The response, and the caller's tenant where one was authenticated.

        The response is closed already, and its database connection given back, unless it has yet to stream.
        """
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, unreadable = self.create_request(scope, body)
        if request is not None:
            request.body_refusal = refusal  # type: ignore[attr-defined]  # for BodyRefusalMiddleware
        response: Any = unreadable if request is None else self.get_response(request)
        if not response.streaming:
            response.close()
        caller = getattr(request, "caller", None)
        actor = (caller and caller.actor) or getattr(request, "actor", None)
        return response, actor and actor.tenant_id

    async def _send_stream(
        self, response: HttpResponseBase, receive: Any, send: Any, reader_left: threading.Event
    ) -> None:
        """Send what comes, until it ends or nobody listens, which sets `reader_left`."""
        sending = asyncio.create_task(self.send_response(response, send))
        listening = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
        finally:
            reader_left.set()
            for task in (sending, listening):
                task.cancel()
            with suppress(asyncio.CancelledError, RequestAborted):
                await listening
            with suppress(asyncio.CancelledError):
                await sending
