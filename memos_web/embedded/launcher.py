"""Starts the product from one process: `python -m memos_web.embedded.launcher SHARED CHANNEL FOLDER`.

Importing the product takes two seconds of processor time, so one process imports it once. A first fork prepares the
installation, further forks become web, worker and beat, and then this process ends: the supervisor, which adopts
orphans, becomes their parent. SHARED: socket of the web processes. CHANNEL: socket to the supervisor; only the
preparing fork reads it, since it carries the owner's address. FOLDER: identifies the installation in a list of
processes.
"""

import gc
import os
import select
import socket
import sys
import threading
from importlib import import_module
from pathlib import Path

from memos_web.config import Config, read_config
from memos_web.embedded import product_programs
from memos_web.embedded.forks import become
from memos_web.embedded.messages import send
from memos_web.embedded.programs import Program, bind_to

MODULES = (
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.thread",
    "django_celery_beat.schedulers",
    "governance.tasks",
    "memos_web.celery",
    "memos_web.embedded.preparation",
    "memos_web.handler",
    "memos_web.mcp.app",
    "memos_web.mem0.app",
    "memos_web.metrics",
    "memos_web.product.app",
    "memos_web.telemetry",
    "uvicorn",
    "vault.retrieval.preload",
    "vault.tasks",
)


def import_product() -> None:
    """Import everything that web, worker and beat need at their start, without connecting to anything."""
    import django

    django.setup(set_prefix=False)
    for name in MODULES:
        import_module(name)
    from django.urls import resolve

    resolve("/healthz")
    gc.collect()
    gc.freeze()  # a collection would write to pages that the forks share


def has_threads() -> bool:
    """Return whether this process has threads, whose locks could block a fork for ever."""
    return threading.active_count() > 1 or len(list(Path("/proc/self/task").iterdir())) > 1


def launch(shared: int, supervisor: socket.socket) -> Program | None:
    """Fork the programs. Returns the program that this process must become, or None in the launcher itself.

    If a library has started threads, nothing is forked, and the supervisor starts each program itself. Exits with 1 if
    the preparation fails.
    """
    config = read_config(os.environ)
    import_product()
    select.select([supervisor], [], [])
    _prepare(config, supervisor)
    return None if has_threads() else _fork_each(config, shared, supervisor)


def _prepare(config: Config, supervisor: socket.socket) -> None:
    from memos_web.embedded.preparation import prepare

    launcher = os.getpid()
    child = os.fork()
    if child == 0:
        bind_to(launcher)
        sys.exit(prepare(config, supervisor))
    if os.waitpid(child, 0)[1]:
        sys.exit(1)


def _fork_each(config: Config, shared: int, supervisor: socket.socket) -> Program | None:
    pids = {}
    for program in product_programs.programs(config, shared):
        pid = os.fork()
        if pid == 0:
            supervisor.close()
            return program
        pids[program.name] = pid
    send(supervisor, pids=pids)
    return None


if __name__ == "__main__":
    parents, listening = (os.getpid(), os.getppid()), int(sys.argv[1])
    chosen = launch(listening, socket.socket(fileno=int(sys.argv[2])))
    if chosen is not None:
        if listening not in chosen.descriptors:
            os.close(listening)
        become(chosen, parents)
