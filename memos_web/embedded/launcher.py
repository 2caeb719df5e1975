"""Starts the product from one process: `python -m memos_web.embedded.launcher SHARED CHANNEL FOLDER`.

Importing the product costs two seconds of processor time, so this process does it once. Then a fork prepares the
installation, others become web, worker and beat, and this process ends: the supervisor, which adopts orphans, is their
parent from then on. SHARED: the socket of the web processes. CHANNEL: the supervisor's; only the fork that prepares
reads from it, since the owner's address comes through it. FOLDER: says in a list of processes which installation it is.
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
    """Import all that web, worker and beat use from their start, and connect to nothing."""
    import django

    django.setup(set_prefix=False)
    for name in MODULES:
        import_module(name)
    from django.urls import resolve

    resolve("/healthz")
    gc.collect()
    gc.freeze()  # a collection would touch, and so copy, what the forks share


def has_threads() -> bool:
    """Return whether this process has threads: a fork might then wait for ever for a lock of one."""
    return threading.active_count() > 1 or len(list(Path("/proc/self/task").iterdir())) > 1


def launch(shared: int, supervisor: socket.socket) -> Program | None:
    """Return the program that this process must become; None in the process that was started.

    With threads of a library nothing is forked, and the supervisor starts each program by itself. Exits with 1 where
    the installation cannot be prepared.
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
