"""Turns a fork of the launcher into a program, as if the program had been started directly."""

import ctypes
import os
import runpy
import sys
import time
from pathlib import Path

from memos_web.embedded.programs import Program, bind_to, open_log

ARGUMENTS_START, ARGUMENTS_END = 45, 46  # fields of /proc/PID/stat after the name


def become(program: Program, parents: tuple[int, int]) -> None:
    """Run a program that is a Python module (`python -m …`) in this process.

    parents: process ids of the launcher, and of the supervisor, which adopts this process when the launcher ends.
    """
    launcher, supervisor = parents
    while os.getppid() == launcher:
        time.sleep(0.002)
    os.setsid()
    bind_to(supervisor, program)
    _redirect(program)
    os.environ.clear()
    os.environ.update(program.environ)
    _show_arguments(program.argv)
    _, _, module, *words = program.argv
    sys.argv = ["", *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _redirect(program: Program) -> None:
    with open_log(program.log) as log, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


def _show_arguments(argv: tuple[str, ...]) -> None:
    """Replace the launcher's arguments, which `ps` shows, by these, as far as they fit."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    start, end = int(fields[ARGUMENTS_START]), int(fields[ARGUMENTS_END])
    text = "\0".join(argv).encode()[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, len(text))
