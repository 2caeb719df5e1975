"""Statements of the hot path, planned once for each connection (docs/decisions/0017).

Only for statements of one shape, whose best plan is the same whoever asks and however much there is of it. They go to
libpq themselves (docs/decisions/0025): what Django and psycopg do for a cursor takes longer than PostgreSQL takes for
most of these statements.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache, partial
from typing import Any, Protocol, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from governance.errors import Unavailable

PLACEHOLDER = re.compile(r"%(?:\((?P<name>\w+)\)s|(?P<next>s)|(?P<percent>%))")
KEPT = 500  # statements whose text is kept in PostgreSQL's form
MOST_PREPARED = 100  # of one connection; psycopg keeps as many by itself
SUCCESS = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
Send = Callable[[], None]
Values = Sequence[Any] | Mapping[str, Any]


class Cursor(Protocol):
    """What a prepared statement is asked with: no more than this of Django's cursors."""

    def execute(self, query: str, params: Values | None = None) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class _Prepared:
    """What one connection keeps between statements.

    waiting: those that are to be sent together, None while each goes by itself.
    """

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._raw = raw
        self._values = Transformer(raw)
        self._names: OrderedDict[tuple[bytes, tuple[int, ...]], bytes] = OrderedDict()
        self._made = 0
        self.waiting: list[tuple[Send, _Direct]] | None = None

    def ask(self, cursor: "_Direct", statement: bytes, values: Sequence[Any]) -> None:
        """Raises what psycopg does."""
        send = self._sender(statement, values)
        if self.waiting is not None:
            self.waiting.append((send, cursor))
        elif self._has_begun():
            cursor.rows = self._rows(self._answer(send))
        else:
            self._send_together([(send, cursor)])

    def send_waiting(self) -> None:
        waiting, self.waiting = self.waiting or [], None
        self._send_together(waiting)

    def _send_together(self, asked: Sequence[tuple[Send, "_Direct"]]) -> None:
        begin = [] if self._has_begun() else [self._send_begin]
        results = self._in_one_go([*begin, *(send for send, _ in asked)])
        for (_, cursor), result in zip(asked, results[len(begin) :], strict=True):
            cursor.rows = self._rows(result)

    def _has_begun(self) -> bool:
        """Whether the transaction that a statement belongs to is open, if it belongs to one."""
        return self._raw.autocommit or self._raw.pgconn.transaction_status != TransactionStatus.IDLE

    def _send_begin(self) -> None:
        self._raw.pgconn.send_query_params(b"BEGIN", None)

    def _answer(self, send: Send) -> PGresult:
        """Raises what a failure tells."""
        send()
        (result,) = self._raw.wait(generators.execute(self._raw.pgconn))
        return _checked(result)

    def _sender(self, statement: bytes, values: Sequence[Any]) -> Send:
        dumped = self._values.dump_sequence(values, [PyFormat.AUTO] * len(values))
        types = self._values.types or ()
        name = self._name(statement, types)
        formats = self._values.formats
        return partial(self._raw.pgconn.send_query_prepared, name, dumped, formats, Format.BINARY)

    def _name(self, statement: bytes, types: tuple[int, ...]) -> bytes:
        key = (statement, types)
        if key not in self._names:
            self._prepare(key)
        self._names.move_to_end(key)
        return self._names[key]

    def _prepare(self, key: tuple[bytes, tuple[int, ...]]) -> None:
        """Within the transaction: what cannot be planned fails there."""
        if not self._has_begun():
            self._answer(self._send_begin)
        self._made += 1
        name = b"memos_%d" % self._made
        self._answer(partial(self._raw.pgconn.send_prepare, name, *key))
        self._names[key] = name
        while len(self._names) > MOST_PREPARED:
            _, oldest = self._names.popitem(last=False)
            self._answer(partial(self._raw.pgconn.send_query, b"DEALLOCATE " + oldest))

    def _in_one_go(self, sends: Sequence[Send]) -> list[PGresult]:
        """The result of each. Raises what the first failure tells."""
        pgconn = self._raw.pgconn
        pgconn.enter_pipeline_mode()
        try:
            for send in [*sends, pgconn.pipeline_sync]:
                send()
            results = self._raw.wait(_answers(pgconn, len(sends) + 1))
        finally:
            self._leave_pipeline()
        return [_checked(result) for result in results[:-1]]

    def _leave_pipeline(self) -> None:
        try:
            self._raw.pgconn.exit_pipeline_mode()
        except psycopg.OperationalError:  # it is lost, or answers are due that nobody else may read
            self._raw.close()

    def _rows(self, result: PGresult) -> deque[tuple[Any, ...]]:
        self._values.set_pgresult(result)
        rows = deque(self._values.load_rows(0, result.ntuples, tuple))
        self._values.set_pgresult(None)  # which may be large, and the connection idle for long
        return rows


class _Direct:
    """Asks one statement at a time; all its rows are there after it."""

    def __init__(self, prepared: _Prepared, errors: AbstractContextManager[Any]) -> None:
        self._prepared = prepared
        self._errors = errors
        self.rows: deque[tuple[Any, ...]] = deque()

    def __enter__(self) -> "_Direct":
        return self

    def __exit__(self, *_: object) -> None:
        self.rows.clear()

    def execute(self, query: str, params: Values | None = None) -> None:
        self.rows.clear()
        with self._errors:
            self._prepared.ask(self, *_bound(query, params))

    def fetchone(self) -> tuple[Any, ...] | None:
        return self.rows.popleft() if self.rows else None

    def fetchall(self) -> list[Any]:
        rows = list(self.rows)
        self.rows.clear()
        return rows


class _Heard(psycopg.RawCursor[Any]):
    """The same through Django's wrappers, for whoever listens to statements.

    They call `execute` with two arguments, and read `_query` for their log. Rows come in PostgreSQL's binary form,
    which neither side writes out and reads again; JSON comes parsed, and times in the connection's time zone, UTC.
    """

    def execute(self, query: Any, params: Any = None, **options: Any) -> "_Heard":
        statement, values = _bound(query, params)
        # Not prepared: psycopg would forget its own statements after a failure, and ours with them.
        return super().execute(statement, values, **{**options, "binary": True})

    def _convert_query(self, query: Any, params: Any = None) -> Any:
        self._query = super()._convert_query(query, params)
        return self._query


def sql_array(values: Iterable[Any]) -> str:
    """Numbers, ids and None as PostgreSQL writes an array; the driver would look into each for what to quote."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def ensure_connection() -> None:
    """Raises Unavailable."""
    try:
        connections[DEFAULT_DB_ALIAS].ensure_connection()
    except OperationalError as error:
        raise Unavailable("The database cannot be reached.") from error


def prepared_cursor() -> AbstractContextManager[Cursor]:
    """A cursor whose statements PostgreSQL keeps with their plan; values are bound by the server.

    Raises Unavailable.
    """
    ensure_connection()
    django = connections[DEFAULT_DB_ALIAS]
    django.validate_no_broken_transaction()
    if _is_heard(django):
        return _heard(django)
    return _Direct(_prepared_on(django.connection), django.wrap_database_errors)


@contextmanager
def _heard(django: BaseDatabaseWrapper) -> Iterator[Cursor]:
    with django.wrap_database_errors, _Heard(django.connection) as raw:
        wrapped = django.make_debug_cursor if django.queries_logged else django.make_cursor
        yield cast(Cursor, wrapped(cast(Any, raw)))


@contextmanager
def in_one_go() -> Iterator[None]:
    """Send the statements of open prepared cursors together. Their rows are there after it, and so is what one raises.

    Outside a transaction they are one: all of them happen or none. Raises RuntimeError within another.
    """
    django = connections[DEFAULT_DB_ALIAS]
    if _is_heard(django):
        with django.connection.pipeline():
            yield
        return
    prepared = _prepared_on(django.connection)
    if prepared.waiting is not None:
        raise RuntimeError("statements in one go hold no others")
    prepared.waiting = []
    try:
        yield
        with django.wrap_database_errors:
            prepared.send_waiting()
    finally:
        prepared.waiting = None


def _is_heard(django: BaseDatabaseWrapper) -> bool:
    return bool(django.queries_logged or django.execute_wrappers)


def _prepared_on(raw: Any) -> _Prepared:
    """Kept with the connection itself: a pool hands it from thread to thread."""
    found = raw.__dict__.get("_memos_prepared")
    if found is None:
        found = raw.__dict__["_memos_prepared"] = _Prepared(raw)
    return cast(_Prepared, found)


def _answers(pgconn: PGconn, count: int) -> PQGen[list[PGresult]]:
    """The results of `count` commands of a pipeline, each of which has one."""
    yield from generators.send(pgconn)
    results = list[PGresult]()
    while len(results) < count:
        results += yield from generators.fetch_many(pgconn)
    return results


def _checked(result: PGresult) -> PGresult:
    """Raises what a failure tells."""
    if result.status == ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(result)
    if result.status not in SUCCESS:
        raise psycopg.InternalError(f"unexpected answer to a statement: {result.status}")
    return result


def _bound(query: str, params: Values | None) -> tuple[bytes, Sequence[Any]]:
    if params is None:
        return query.encode(), ()
    statement, names = _numbered(query)
    return statement, [params[name] for name in names] if isinstance(params, Mapping) else params


@lru_cache(KEPT)
def _numbered(statement: str) -> tuple[bytes, list[str]]:
    """The statement with PostgreSQL's own placeholders, and the names of its values in that order.

    Made once: psycopg would do it for each call, as it keeps no statement beyond 4,096 letters.
    """
    names: list[str] = []

    def number(place: re.Match[str]) -> str:
        if place["percent"]:
            return "%"
        if place["next"] or place["name"] not in names:
            names.append(place["name"] or "")
            return f"${len(names)}"
        return f"${names.index(place['name']) + 1}"

    return PLACEHOLDER.sub(number, statement).encode(), names
