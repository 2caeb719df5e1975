"""The checks of `doctor`. Each returns its result, or raises Failed with the reason. No check changes anything."""

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path

import httpx2
import psycopg
import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from kombu.exceptions import OperationalError as BrokerError

from governance.audit.checkpoints import checkpoints_folder
from governance.audit.health import audit_health, can_write_checkpoints
from governance.database import session_connection
from governance.errors import DomainError, KeyUnavailable
from governance.heartbeats import Part, silent_parts
from governance.keys.places import place_at
from governance.keys.services import rotating_key_store
from governance.redis_address import count_sentinels, is_sentinel, redis_client
from governance.replica import ReplicaState, replica_health
from governance.tenants.role_check import UnsafeRole
from governance.tenants.selectors import tenants_all
from governance.tenants.services import command_line_actor
from governance.tenants.startup_check import refuse_unsafe_role
from governance.transport import CallEnded, Limits, Reach, Transport
from memos_web.celery import app
from memos_web.config import Config
from memos_web.disk import least_room
from memos_web.fellows import refuse_strangers
from vault.cubes.storage import WITHIN_HOURS, ReclaimState, list_missing_rights, list_remaining_copies, reclaim_state
from vault.embeddings.change_progress import Move, move_get
from vault.embeddings.index_copies import index_state
from vault.embeddings.model_change import tenants_to_reembed
from vault.providers.registry import embedder, llm, vector_index

# Settings of PostgreSQL that write statements or values to its log unless they have the values below.
LOGGED = """
SELECT name FROM pg_settings WHERE NOT CASE name
  WHEN 'log_error_verbosity' THEN setting = 'terse'
  WHEN 'log_min_error_statement' THEN setting IN ('fatal', 'panic')
  WHEN 'log_statement' THEN setting IN ('none', 'ddl')
  WHEN 'log_min_duration_statement' THEN setting = '-1'
  WHEN 'log_min_duration_sample' THEN setting = '-1'
  WHEN 'log_transaction_sample_rate' THEN setting = '0'
  ELSE true END ORDER BY name
"""
SAME_DATABASE = "SELECT pg_postmaster_start_time(), current_database(), current_user"
MOST_LISTED = 5  # tenants, in one line
WORKER_SECONDS = 2.0
LLM_SECONDS = 3.0
UNFORCED = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.attname = 'tenant_id' AND c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
ORDER BY 1
"""


REMEDIES = {Part.BEAT: "beat", Part.WORKER: "the worker, and beat,", Part.WORKER_HEAVY: "the heavy worker, and beat,"}


class Failed(Exception):
    """A check found a fault. The message is one line for a person."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one check."""

    check: str
    ok: bool
    detail: str


def findings(config: Config) -> Iterator[Finding]:
    """Run every check, and yield the outcomes in the order in which a person would look for a fault."""
    for name, check in _checks(config).items():
        yield _finding(name, check)


def _finding(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, check())
    except (Failed, UnsafeRole, DomainError) as error:
        return Finding(name, False, _one_line(error))
    except DatabaseError as error:
        return Finding(name, False, f"the database does not answer: {_one_line(error)}")


def _checks(config: Config) -> dict[str, Callable[[], str]]:
    return {
        "configuration": lambda: f"{settings.PUBLIC_URL}, embedder {config.embedder.family}",
        "data directory": lambda: data_directory(config.data_dir),
        "disk": disk,
        "postgresql": postgresql,
        **({"pooler": pooler} if config.database_direct_url else {}),
        **({"replica": replica} if config.database_read_url else {}),
        "pgvector": pgvector,
        "database log": database_log,
        "database role": database_role,
        "migrations": migrations,
        "row-level security": row_level_security,
        "purged bytes": purged_bytes,
        "redis": redis_server,
        "workers": worker,
        **{part.value: partial(background, part) for part in Part},
        "checkpoints": checkpoints,
        "key store": keys,
        "nodes": nodes,
        "embedder": embedding,
        "embedding models": embedding_models,
        "vector index": nearest_vectors,
        "language model": language_model,
    }


def data_directory(folder: Path) -> str:
    """Check that the data directory exists and that other users cannot read it."""
    if not folder.is_dir():
        raise Failed(f"{folder} does not exist: start with `manage.py up`, or set MEMOS_DATA_DIR")
    secret = ("keys", "keys/master.key", "keys/django.key", "keys/keystore.sqlite3", "first-run.json")
    private = [folder / name for name in secret]
    # A folder may let others pass (the servers' account must), but not list it.
    readable = [path for path in private if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
    if folder.stat().st_mode & (stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH):
        readable.insert(0, folder)
    if readable:
        raise Failed(f"others can read {readable[0]}: chmod go-rwx it")
    return str(folder)


def postgresql() -> str:
    version = _one_value("SHOW server_version")
    return f"version {version}"


def pooler() -> str:
    """Check what a pooler of transactions leaves to the role, and that both ways lead to one database."""
    if _one_value("SHOW plan_cache_mode") != "force_generic_plan" or _one_value("SHOW timezone") != "UTC":
        raise Failed("memos_app lacks settings that a pooler does not pass on: run deploy/init-database.sh again")
    with session_connection().cursor() as cursor:
        cursor.execute(SAME_DATABASE)
        directly = cursor.fetchone()
    with connection.cursor() as cursor:
        cursor.execute(SAME_DATABASE)
        if cursor.fetchone() != directly:
            raise Failed("DATABASE_DIRECT_URL is another database, or another role, than DATABASE_URL")
    return "passes transactions; locks and notifications go directly"


def replica() -> str:
    """Check that the server for readings is a replica of this database, and not behind."""
    found = replica_health()
    if found is None or found.state is ReplicaState.DOWN:
        raise Failed("DATABASE_READ_URL does not answer: everything is read from the primary meanwhile")
    if found.state is ReplicaState.OTHER:
        raise Failed("DATABASE_READ_URL is no replica of DATABASE_URL, or has another role: it is not read")
    if found.state is ReplicaState.LATE:
        raise Failed(f"is {found.lag_seconds:.0f} seconds behind: readings are on the primary meanwhile")
    return f"{found.lag_seconds:.1f} seconds behind"


def pgvector() -> str:
    version = _one_value("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    if version is None:
        raise Failed("the extension vector is missing: run deploy/database.sql as a superuser")
    return f"version {version}"


def database_log() -> str:
    """Check that the server's log has neither statements nor values, which contain user content."""
    with connection.cursor() as cursor:
        cursor.execute(LOGGED)
        found = [row[0] for row in cursor.fetchall()]
    if found:
        raise Failed(f"content can come into the server's log by {', '.join(found)}: run deploy/database.sql again")
    return "has neither statements nor values"


def database_role() -> str:
    refuse_unsafe_role()
    return f"{_one_value('SELECT current_user')} owns nothing and is bound by row-level security"


def migrations() -> str:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        raise Failed(f"{len(missing)} not applied, first {missing[0][0]}: run `manage.py migrate` as the owner")
    return "all applied"


def row_level_security() -> str:
    with connection.cursor() as cursor:
        cursor.execute(UNFORCED)
        unforced = [row[0] for row in cursor.fetchall()]
    if unforced:
        raise Failed(f"not forced on {', '.join(unforced)}")
    return "forced on every table of a tenant"


def purged_bytes() -> str:
    """Check that purged bytes leave the database's files in time.

    The operator's own server may lack the rights for this; the product serves anyway, and purges later.
    """
    if missing := list_missing_rights():
        return f"stay in files and log until VACUUM FULL is run by hand: {', '.join(missing)} is missing"
    if reclaim_state() is ReclaimState.LATE:
        raise Failed(f"are in the files for more than {WITHIN_HOURS} hours: see the worker's log")
    return "; ".join([f"gone from files within {WITHIN_HOURS} hours of a purge", *list_remaining_copies()])


def redis_server() -> str:
    address, place = settings.REDIS_ADDRESS, ""
    if is_sentinel(address):
        answering, all_of_them = count_sentinels(address, timeout=1)
        if answering <= all_of_them // 2:
            raise Failed(
                f"{answering} of {all_of_them} sentinels answer: start the others, which replace a lost primary"
            )
        place = f", by {answering} of {all_of_them} sentinels"
    client = redis_client(address, timeout=1)
    try:
        answer = client.info("server")
    except redis.RedisError as error:
        raise Failed(f"does not answer: {_one_line(error)}") from error
    finally:
        client.close()
    valkey = answer.get("valkey_version")  # Valkey also reports the version of Redis with which it is compatible
    return f"{f'Valkey {valkey}' if valkey else 'Redis ' + answer['redis_version']}{place}"


def worker() -> str:
    try:
        answers = app.control.inspect(timeout=WORKER_SECONDS).ping()
    except (OSError, BrokerError) as error:
        raise Failed("cannot be asked: Redis does not answer") from error
    if not answers:
        raise Failed("none answers: jobs wait in the outbox until one does")
    return f"{len(answers)} answering"


def disk() -> str:
    room = least_room()
    if room.is_full:
        raise Failed(f"{room.folder} has {room.free >> 20} MB left: make room, or nothing is served")
    return f"{room.free >> 30} GB free"


def background(part: Part) -> str:
    """Check that a part that works in the background is alive. The sealer must also not be late."""
    silence = silent_parts().get(part)
    if silence is not None:
        since = "never been at work" if silence == inf else f"been silent for {silence:.0f} seconds"
        raise Failed(f"has {since}: start {REMEDIES.get(part, 'the worker')} again")
    late = audit_health()
    if part is Part.SEALER and late.is_sealing_late:
        raise Failed(
            f"an audit entry has waited {late.unsealed_seconds:.0f} seconds for its seal: see the worker's log"
        )
    return "at work"


def checkpoints() -> str:
    if not can_write_checkpoints():
        raise Failed(f"{checkpoints_folder()} cannot be written: give the product's account the right to")
    late = audit_health()
    if late.is_signing_late:
        raise Failed(f"the last one is {late.unsigned_seconds:.0f} seconds late: see the worker's log")
    return str(checkpoints_folder())


def keys() -> str:
    store = rotating_key_store()
    given = place_at(settings.KEY_STORE_URL or settings.KEY_STORE_PATH)
    try:
        if given.mark() is None and not tenants_all():
            raise Failed(f"{given.name} does not exist: the first start makes one")
        store.check()
    except KeyUnavailable as error:
        reason = f" ({_one_line(error.__cause__)})" if isinstance(error.__cause__, psycopg.Error) else ""
        raise Failed(f"{store.place.name}: {error.detail}{reason}") from error
    if store.place.address != given.address:
        raise Failed(f"it has moved to {store.place.name}: set MEMOS_KEY_STORE_URL accordingly and restart everything")
    return store.place.name


def nodes() -> str:
    """Check that the running processes use the keys and the blob store of this one."""
    refuse_strangers()
    return "share keys and blobs"


def embedding() -> str:
    model = embedder()
    vectors = model.embed(["doctor"])
    return f"{model.name}, {vectors.shape[1]} dimensions"


def embedding_models() -> str:
    """Return the progress of tenants that change their embedding model, and the tenants that should change it."""
    tenants = {slug: command_line_actor(tenant_id) for slug, tenant_id in tenants_all()}
    moves = {slug: move for slug, actor in tenants.items() if (move := move_get(actor=actor)) is not None}
    failing = [_progress(slug, move) for slug, move in moves.items() if move.error]
    if failing:
        raise Failed(f"{_some(failing)}: mend the model, then outbox_resume, or reembed --cancel")
    waiting = {tenants[slug].tenant_id for slug in tenants.keys() - moves.keys()}.intersection(tenants_to_reembed())
    lines = [_progress(slug, move) for slug, move in moves.items()]
    if waiting:
        lines.append(f"tenants that keep a former model until `reembed`: {len(waiting)}")
    return _some(lines) or "no tenant changes its model"


def nearest_vectors() -> str:
    """Check that the index outside PostgreSQL answers, and return the tenants whose searches ask it."""
    index = vector_index()
    tenants = {slug: command_line_actor(tenant_id) for slug, tenant_id in tenants_all()}
    states = {slug: index_state(actor=actor) for slug, actor in tenants.items()}
    elsewhere = [slug for slug, state in states.items() if state.name and (index is None or state.name != index.name)]
    if elsewhere:
        raise Failed(f"MEMOS_VECTOR_INDEX is not the index of {_some(elsewhere)}: set it, or move them by vector_index")
    if index is None:
        return "PostgreSQL"
    index.check()
    filled = sum(state.is_filled for state in states.values())
    return f"{index.name}, used by {filled} of {len(states)} tenants"


def _progress(slug: str, move: Move) -> str:
    line = f"{slug} {move.active} → {move.model}: {move.done} of {move.total} memories"
    if not move.error:
        return line
    return f"{line}, {'given up' if move.given_up else 'tried again'} after {' '.join(move.error.split())}"


def _some(lines: list[str]) -> str:
    more = [f"and {len(lines) - MOST_LISTED} more"] if len(lines) > MOST_LISTED else []
    return "; ".join([*lines[:MOST_LISTED], *more])


def language_model() -> str:
    model = llm()
    if model is None:
        return "none: answers are extractive (set MEMOS_LLM_URL and MEMOS_LLM_MODEL for a model)"
    _ask_for_models(settings.MEMOS_LLM.url, settings.MEMOS_LLM.key)
    return f"{model.name} at {settings.MEMOS_LLM.url}"


def _ask_for_models(url: str, key: str) -> None:
    limits = Limits(seconds=LLM_SECONDS, connect_seconds=LLM_SECONDS, read_seconds=LLM_SECONDS)
    try:
        with httpx2.Client(transport=Transport(limits, Reach.OPERATOR), trust_env=False) as client:
            headers = {"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"}
            with client.stream("GET", f"{url.rstrip('/')}/models", headers=headers) as answer:
                status = answer.status_code
    except (CallEnded, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise Failed(f"the endpoint cannot be reached: {_one_line(error)}") from error
    if status in {401, 403}:
        raise Failed("the endpoint refuses MEMOS_LLM_KEY")
    if status >= 500:
        raise Failed(f"the endpoint answers {status}")
    # Any other answer comes from a living server; not all of them list their models.


def _one_value(query: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    return row[0] if row else None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
