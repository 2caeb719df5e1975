"""Places of a key store: a SQLite file, or a PostgreSQL of its own. Free of Django."""

import hashlib
import logging
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from governance.errors import KeyUnavailable
from governance.keys.registry import DATABASE
from governance.keys.tables import MOVED, SCHEMA, Session

logger = logging.getLogger(__name__)
Mark = tuple[object, ...]  # changes where the store was changed by more than a new key
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
BOOT = Path("/proc/sys/kernel/random/boot_id")


class Place(Protocol):
    """The storage of the tables of a key store. Every method raises KeyUnavailable if the place does not answer."""

    address: str  # opens the place; may hold a password
    name: str  # for a person; holds no secret
    missing: str  # the refusal without a store
    damaged: str

    def mark(self, *, is_fresh: bool = False) -> Mark | None:
        """Return a value that changes with the store, or None if there is no store. is_fresh: do not repeat an answer
        of the last second."""

    def make(self, write: Callable[[Session], None]) -> bool:
        """Create the tables and fill them with `write`, completely or not at all. Return False if a store is there."""

    def open(self) -> AbstractContextManager[Session]:
        """Open the store for single statements."""

    def transaction(self) -> AbstractContextManager[Session]:
        """Open the store in one transaction. Only one process at a time has one."""

    def verify(self, db: Session) -> None:
        """Check the storage itself."""

    def touch(self) -> None:
        """Change the mark after a transaction."""

    def purge(self) -> None:
        """Remove the bytes of deleted rows, as far as the place can."""

    def database(self) -> object | None:
        """Return which PostgreSQL database this is; None for another kind of place."""

    def remove(self) -> None:
        """Remove the whole store."""

    def fingerprint(self) -> str:
        """Return a text that is the same for all processes that use this place, and for no copy of it."""


class SqliteSession(sqlite3.Connection):
    """A key file with the parameters of psycopg."""

    def execute(self, statement: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute(statement.replace("%s", "?"), parameters)

    def execute_each(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        super().executemany(statement.replace("%s", "?"), rows)

    def tables(self) -> frozenset[str]:
        return frozenset(row[0] for row in self.execute("SELECT name FROM sqlite_schema"))


class SqlitePlace:
    """One file with `secure_delete`, safe between processes of one machine. The rollback journal is truncated, so
    destroyed keys leave no copy in a log."""

    missing = "The key store is missing: restore keystore.sqlite3 from its backup."
    damaged = "The key store is empty or damaged: restore keystore.sqlite3 from its backup."

    def __init__(self, path: Path) -> None:
        self._path = path
        self.address = self.name = str(path)

    def mark(self, *, is_fresh: bool = False) -> Mark | None:
        """Return inode, time of the last change in ns, and size in bytes."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyUnavailable(self.missing) from error
        return status.st_ino, status.st_mtime_ns, status.st_size

    def make(self, write: Callable[[Session], None]) -> bool:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, draft = tempfile.mkstemp(prefix=f"{self._path.name}.", dir=self._path.parent)  # mode 0600
            os.close(descriptor)
            with closing(_file_open(Path(draft))) as db:
                db.execute("BEGIN IMMEDIATE")
                for statement in SCHEMA:
                    db.execute(f"{statement} WITHOUT ROWID")
                write(db)
                db.execute("COMMIT")
                db.execute("PRAGMA journal_mode = DELETE")  # leaves no journal of the draft behind
            is_made = False
            with suppress(FileExistsError):
                os.link(draft, self._path)
                is_made = True
            os.unlink(draft)
        except (sqlite3.Error, OSError) as error:
            raise KeyUnavailable("The key store cannot be made: the folder of keys cannot be written.") from error
        return is_made

    @contextmanager
    def open(self) -> Iterator[Session]:
        try:
            with closing(_file_open(self._path)) as db:
                yield db
        except sqlite3.OperationalError as error:
            raise KeyUnavailable("The key store cannot be opened.") from error
        except (sqlite3.Error, OSError) as error:
            raise KeyUnavailable(self.damaged) from error

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        with self.open() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    def verify(self, db: Session) -> None:
        if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise KeyUnavailable(self.damaged)

    def touch(self) -> None:
        """Change the modification time, since two changes within one tick of the clock would look like one."""
        try:
            status = self._path.stat()
            os.utime(self._path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        except OSError as error:
            raise KeyUnavailable(self.missing) from error

    def purge(self) -> None:
        """Do nothing: `secure_delete` has overwritten them."""

    def database(self) -> object | None:
        return None

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def fingerprint(self) -> str:
        return folder_fingerprint(self._path.parent)


def _file_open(path: Path) -> SqliteSession:
    """Open an existing file, which other users of the machine cannot read; never create one."""
    address = f"{path.absolute().as_uri()}?mode=rw"
    db = sqlite3.connect(address, uri=True, timeout=5, isolation_level=None, factory=SqliteSession)
    try:
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA journal_mode = TRUNCATE")
        db.execute("PRAGMA synchronous = EXTRA")
    except sqlite3.Error:
        db.close()
        raise
    return db


class PostgresPlace:
    """A schema in a PostgreSQL database of its own, which the processes of several machines share."""

    missing = "The key store is missing: its database has no keys. Restore it from its backup, or run keystore_move."
    damaged = "The key store is empty or damaged: restore its database from its backup."
    schema = "memos_keys"
    purge_pauses = (0.0, 0.1, 0.3, 1.0)  # seconds before each attempt
    mark_seconds = 1.0  # how old an answer of `mark` may be
    _mark = """
    SELECT key_store.id, proof, (SELECT count(*) FROM destroyed_scope), (SELECT count(*) FROM rotation),
      (SELECT count(*) FROM root_key), (SELECT string_agg(state, ',') FROM move),
      'key_store'::regclass::oid::bigint, pg_postmaster_start_time() FROM key_store
    """
    _server = "SELECT system_identifier FROM pg_control_system()"
    # One writer at a time. A server that acknowledges before it has written must not do so for keys.
    _begin = """
    SELECT pg_advisory_xact_lock(hashtext('memos_keys')), CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
    """

    def __init__(self, url: str) -> None:
        given = conninfo_to_dict(url)
        self.address = url
        host, port = given.get("host") or given.get("hostaddr") or "localhost", given.get("port") or "5432"
        self.name = f"postgresql://{host}:{port}/{given.get('dbname') or given.get('user') or ''}"
        options = (
            f"{given.get('options') or ''} -c search_path={self.schema} -c statement_timeout=10s -c lock_timeout=8s"
        )
        defaults = {"connect_timeout": 3, "tcp_user_timeout": 8000, "application_name": "memos keys"}
        self.parameters: dict[str, Any] = {**defaults, **given, "options": options.strip()}
        self._idle = _Idle()
        self._marked: tuple[Mark | None, float] | None = None

    def mark(self, *, is_fresh: bool = False) -> Mark | None:
        marked = self._marked
        if marked is not None and not is_fresh and time.monotonic() < marked[1]:
            return marked[0]
        with self.open() as db:
            until = time.monotonic() + self.mark_seconds
            is_there = db.execute("SELECT to_regclass('key_store') IS NOT NULL").fetchone() == (True,)
            mark = (db.execute(self._mark).fetchone() or ()) if is_there else None
        self._marked = (mark, until)
        return mark

    def make(self, write: Callable[[Session], None]) -> bool:
        with self.transaction() as db:
            db.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            if "key_store" in db.tables():
                return False
            for statement in SCHEMA:
                db.execute(statement.replace("BLOB", "bytea"))
            write(db)
        return True

    @contextmanager
    def open(self) -> Iterator[Session]:
        try:
            connection = self._connect()
        except psycopg.Error as error:
            raise KeyUnavailable("The key store does not answer.") from error
        try:
            yield _PostgresSession(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise KeyUnavailable("The key store does not answer.") from error
        except psycopg.Error as error:
            raise KeyUnavailable(self.damaged) from error
        finally:
            self._put_back(connection)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        with self.open() as db:
            db.execute("BEGIN")
            db.execute(self._begin)
            yield db
            db.execute("COMMIT")
        self.touch()

    def verify(self, db: Session) -> None:
        """Do nothing: the server checks its pages as it reads them."""

    def touch(self) -> None:
        self._marked = None

    def purge(self) -> None:
        """Write the table anew, without the bytes of deleted rows. The server's log and backups keep them longer.

        Rows that another transaction can still see stay until the next call.
        """
        for pause in self.purge_pauses:
            time.sleep(pause)
            with suppress(KeyUnavailable), self.open() as db:
                if cast(_PostgresSession, db).rewrite("data_key"):
                    return
        logger.warning("the table of keys has destroyed keys: a transaction can see them, or it cannot be locked")

    def database(self) -> object | None:
        with self.open() as db:
            row: object = db.execute(DATABASE).fetchone()
        return row

    def remove(self) -> None:
        with self.transaction() as db:
            db.execute(f"DROP SCHEMA {self.schema} CASCADE")

    def fingerprint(self) -> str:
        with self.open() as db:
            is_allowed = db.execute("SELECT has_function_privilege('pg_control_system()', 'EXECUTE')").fetchone()[0]
            server = db.execute(self._server).fetchone()[0] if is_allowed else ""  # some managed servers forbid it
            table = db.execute("SELECT 'key_store'::regclass::oid").fetchone()[0]
        return digest_of("postgresql", str(server), str(table))

    def _connect(self) -> psycopg.Connection[Any]:
        """Return a connection that waits, if it still works, or a new one."""
        while waiting := self._idle.take():
            connection, since = waiting
            if time.monotonic() - since < self.mark_seconds:
                return connection
            with suppress(psycopg.Error):
                connection.execute("SELECT 1")
                return connection
            connection.close()
        return psycopg.connect(**self.parameters, autocommit=True, prepare_threshold=None)

    def _put_back(self, connection: psycopg.Connection[Any]) -> None:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()  # rolls back
        else:
            self._idle.give(connection)


class _Idle:
    """Connections that wait for their next use by any thread, but not by a child of this process."""

    most = 8

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[psycopg.Connection[Any], float]] = []
        self._process = os.getpid()

    def take(self) -> tuple[psycopg.Connection[Any], float] | None:
        with self._lock:
            if self._process != os.getpid():
                self._waiting, self._process = [], os.getpid()
            return self._waiting.pop() if self._waiting else None

    def give(self, connection: psycopg.Connection[Any]) -> None:
        with self._lock:
            if len(self._waiting) < self.most:
                self._waiting.append((connection, time.monotonic()))
                return
        connection.close()

    def __del__(self) -> None:
        if self._process == os.getpid():
            for connection, _ in self._waiting:
                connection.close()


class _PostgresSession:
    """A connection with the statements of `governance.keys.tables`, which are texts of the program."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def rewrite(self, table: str) -> bool:
        """Write a table anew. Return whether all its deleted rows are gone, as the server reports."""
        details: list[str] = []

        def note(diagnostic: psycopg.errors.Diagnostic) -> None:
            details.append(diagnostic.message_detail or "")

        self._connection.add_notice_handler(note)
        try:
            self.execute(f"VACUUM (FULL, VERBOSE) {table}")
        finally:
            self._connection.remove_notice_handler(note)
        return any(detail.startswith("0 ") for detail in details)  # "0 dead row versions cannot be removed yet."

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        return self._connection.execute(statement.encode(), parameters or None)

    def execute_each(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        self._connection.cursor().executemany(statement.encode(), rows)

    def tables(self) -> frozenset[str]:
        rows = self.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [PostgresPlace.schema])
        return frozenset(row[0] for row in rows)


def place_at(address: str | Path) -> Place:
    """Return the place of an address: `postgresql://…`, or the path of a file."""
    text = str(address)
    return PostgresPlace(text) if text.startswith(POSTGRES_SCHEMES) else SqlitePlace(Path(text))


def is_moved(db: Session) -> bool:
    """Return whether an open store names another place."""
    if "move" not in db.tables():
        return False
    return db.execute("SELECT 1 FROM move WHERE state = %s", (MOVED,)).fetchone() is not None


def folder_fingerprint(folder: Path) -> str:
    """Return a text that is the same for all processes of this machine that use a folder, and for no copy of it."""
    try:
        status = folder.stat()
        boot = BOOT.read_text(encoding="ascii") if BOOT.exists() else os.uname().nodename
    except OSError as error:
        raise KeyUnavailable(f"The folder {folder.name} cannot be read.") from error
    return digest_of("folder", boot, str(status.st_dev), str(status.st_ino))


def digest_of(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
