"""Checks of servers that the operator names by URL, before anything is started."""

import psycopg
import redis

from governance.keys.registry import NOTED
from governance.redis_address import redis_client
from governance.tenants.role_check import UnsafeRole, refuse_unbound_role
from memos_web.config import Config
from memos_web.embedded.errors import StartError
from memos_web.installation import key_store_path

CONNECT_SECONDS = 2  # per address of the host; two addresses take less than five seconds


def check_given(config: Config) -> None:
    """Raise StartError unless every named server answers, with a role that is safe to serve with."""
    if config.database_url:
        check_database("DATABASE_URL", config.database_url, serves=True)
        check_keys(config)
    if config.database_direct_url:
        check_database("DATABASE_DIRECT_URL", config.database_direct_url, serves=True)
    if config.database_owner_url:
        check_database("DATABASE_OWNER_URL", config.database_owner_url, serves=False)
    if config.redis_url:
        check_redis(config.redis_url)


def check_database(name: str, url: str, *, serves: bool) -> None:
    """Raise StartError unless `url` can be connected to. name: its variable, for messages, which never show the value.

    serves: the URL serves tenants, so row-level security must bind its role.
    """
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            if serves:
                refuse_unbound_role(connection.cursor())
    except UnsafeRole as error:
        raise StartError(f"{name}: {error}") from error
    except psycopg.errors.UndefinedObject as error:
        raise StartError(f"{name}: {_one_line(error)}; deploy/init-database.sh makes the roles") from error
    except psycopg.OperationalError as error:
        raise StartError(f"{name} cannot be reached: {_one_line(error)}") from error
    except psycopg.ProgrammingError as error:
        raise StartError(f"{name} is not a postgresql:// address") from error


def check_keys(config: Config) -> None:
    """Raise StartError if the database records the id of a key store but the data directory has no key store.

    A key store elsewhere is checked when it is opened.
    """
    if config.key_store_url:
        return
    path = key_store_path(config)
    with psycopg.connect(config.database_url, connect_timeout=CONNECT_SECONDS) as connection:
        is_migrated = connection.execute("SELECT to_regclass('governance_keystorenote')").fetchone() != (None,)
        if is_migrated and not path.exists() and connection.execute(NOTED).fetchone():
            raise StartError(f"the key store of this database is missing: restore {path} from its backup")


def check_redis(url: str) -> None:
    """Raise StartError unless a Redis answers at `url`."""
    try:
        client = redis_client(url, timeout=CONNECT_SECONDS)
    except ValueError as error:
        raise StartError("REDIS_URL is not a redis:// or sentinel:// address") from error
    try:
        client.ping()
    except redis.RedisError as error:
        raise StartError(f"REDIS_URL cannot be reached: {_one_line(error)}") from error
    finally:
        client.close()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
