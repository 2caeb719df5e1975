"""A separate process for long work on texts, so that the web process goes on serving."""

import faulthandler
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import FrameType
from typing import Any, TypeVar

from governance.errors import Unavailable

SECONDS = 30.0  # for one call; waiting for others' calls takes as long again at most
TRIES = 2  # a process that ended on the text of another call is replaced
Result = TypeVar("Result")
_lock = threading.Lock()
_pools: list[ProcessPoolExecutor] = []  # none or one


def run_in_text_process(function: Callable[..., Result], *values: Any) -> Result:
    """Call `function(*values)` in the process; both must pickle. Raises Unavailable and the errors of `function`."""
    for _ in range(TRIES):
        pool = _open_pool()
        try:
            return pool.submit(_run_limited, function, values, SECONDS).result(timeout=2 * SECONDS)
        except BrokenProcessPool:
            _discard_pool(pool)
        except TimeoutError as error:
            raise Unavailable("The texts of this call took too long to read. Send fewer at once.") from error
    raise Unavailable("The process that reads texts has ended. Try again.")


def _open_pool() -> ProcessPoolExecutor:
    with _lock:
        if not _pools:
            spawned = multiprocessing.get_context("spawn")  # a fork would copy locks that threads hold
            _pools.append(ProcessPoolExecutor(max_workers=1, mp_context=spawned, initializer=_start_process))
        return _pools[0]


def _discard_pool(pool: ProcessPoolExecutor) -> None:
    with _lock:
        if pool in _pools:
            _pools.remove(pool)
    pool.shutdown(wait=False)


def _start_process() -> None:
    """Set up the new process: load Django, and end when the parent ends."""
    import django

    threading.Thread(target=_end_with_parent, daemon=True).start()
    django.setup(set_prefix=False)
    signal.signal(signal.SIGALRM, _raise_timeout)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _raise_timeout(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def _run_limited(function: Callable[..., Result], values: tuple[Any, ...], seconds: float) -> Result:
    """Call `function`; raise TimeoutError after `seconds`, and end the process after twice as long."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(2 * seconds, exit=True)
    try:
        return function(*values)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
