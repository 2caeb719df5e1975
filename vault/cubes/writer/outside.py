"""Long work on texts in a process of its own, so that the one that serves goes on serving."""

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
TRIES = 2  # a process that died of another's text is replaced
Result = TypeVar("Result")
_lock = threading.Lock()
_pools: list[ProcessPoolExecutor] = []  # none or one


def run_outside(function: Callable[..., Result], *values: Any) -> Result:
    """`function(*values)` in another process; all of it must pickle. Raises what it raises, and Unavailable."""
    for _ in range(TRIES):
        pool = _pool()
        try:
            return pool.submit(_limited, function, values, SECONDS).result(timeout=2 * SECONDS)
        except BrokenProcessPool:
            _discard(pool)
        except TimeoutError as error:
            raise Unavailable("The texts of this call took too long to read. Send fewer at once.") from error
    raise Unavailable("The process that reads texts has ended. Try again.")


def _pool() -> ProcessPoolExecutor:
    with _lock:
        if not _pools:
            spawned = multiprocessing.get_context("spawn")  # a fork would copy locks that threads hold
            _pools.append(ProcessPoolExecutor(max_workers=1, mp_context=spawned, initializer=_begin))
        return _pools[0]


def _discard(pool: ProcessPoolExecutor) -> None:
    with _lock:
        if pool in _pools:
            _pools.remove(pool)
    pool.shutdown(wait=False)


def _begin() -> None:
    """In the new process: load the product, and end when the parent does."""
    import django

    threading.Thread(target=_end_with_parent, daemon=True).start()
    django.setup(set_prefix=False)
    signal.signal(signal.SIGALRM, _too_long)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def _limited(function: Callable[..., Result], values: tuple[Any, ...], seconds: float) -> Result:
    """Raises TimeoutError after `seconds`. Code that lets no signal in ends the process, after twice as long."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(2 * seconds, exit=True)
    try:
        return function(*values)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
