"""Runs pg_dump and pg_restore of the installed PostgreSQL."""

import os
import subprocess
from collections.abc import Mapping, Sequence

import psycopg

from memos_web.backup.manifest import BackupError
from memos_web.embedded.postgres import program_path

VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
TLS = {"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT"}


def run_tool(name: str, words: Sequence[str], conninfo: str) -> None:
    """Run a program of PostgreSQL. The address is passed by the environment, because a command line would show a
    password.

    Raises BackupError with the last line of the program's output.
    """
    done = subprocess.run(
        [str(program_path(name)), "--no-password", *words],
        env=_environ(conninfo),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no reason")
        raise BackupError(f"{name} failed: {last}")


def _environ(conninfo: str) -> Mapping[str, str]:
    given = psycopg.conninfo.conninfo_to_dict(conninfo)
    named = {variable: str(given[name]) for name, variable in (VARIABLES | TLS).items() if given.get(name)}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", "PGCONNECT_TIMEOUT": "5", **named}
