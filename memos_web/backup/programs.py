"""Runs pg_dump and pg_restore of the installed PostgreSQL."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile

import psycopg

from memos_web.backup.manifest import BackupError
from memos_web.embedded.postgres import program_path

CHUNK = 1 << 20
VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
TLS = {"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT"}


def tool_output(name: str, words: Sequence[str], conninfo: str) -> Iterator[bytes]:
    """Run a program of PostgreSQL and yield its output. Raises BackupError with the last line of its messages."""
    with _run_tool(name, words, conninfo, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while chunk := process.stdout.read(CHUNK):
            yield chunk


def feed_tool(name: str, words: Sequence[str], conninfo: str, content: Iterable[bytes]) -> None:
    """Run a program of PostgreSQL on some input. Raises BackupError with the last line of its messages."""
    with _run_tool(name, words, conninfo, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as file:  # a program that ends early says why
            for chunk in content:
                file.write(chunk)


@contextmanager
def _run_tool(name: str, words: Sequence[str], conninfo: str, **pipes: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program; an error of the caller ends it. The address is passed by the environment, because a command line
    would show a password."""
    argv = [str(program_path(name)), "--no-password", *words]
    with TemporaryFile() as messages:
        process = subprocess.Popen(argv, env=_environ(conninfo), stderr=messages, **pipes)  # type: ignore[call-overload]
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            code = process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if code != 0:
            messages.seek(0)
            lines = [line for line in messages.read().decode(errors="replace").splitlines() if line.strip()]
            raise BackupError(f"{name} failed: {lines[-1] if lines else 'no reason'}")


def _environ(conninfo: str) -> Mapping[str, str]:
    given = psycopg.conninfo.conninfo_to_dict(conninfo)
    named = {variable: str(given[name]) for name, variable in (VARIABLES | TLS).items() if given.get(name)}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", "PGCONNECT_TIMEOUT": "5", **named}
