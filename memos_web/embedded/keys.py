"""Checks, before the product is started, that the key store is the one of this database. Makes a new installation's.

A process of its own without Django: the supervisor stays small, and this takes a third of a second.
"""

import os
import sys

import psycopg

from governance.errors import KeyUnavailable
from governance.keys.registry import DatabaseRegistry
from governance.keys.store import SqliteKeyStore
from memos_web.config import Config, ConfigError, read_config
from memos_web.installation import key_store_path, master_key
from memos_web.settings.databases import APP_ROLE, DATABASE_NAME

CONNECT_SECONDS = 5


def check(config: Config) -> None:
    """Raises KeyUnavailable; ConfigError."""
    master = master_key(config)
    if master is None:
        raise ConfigError("there is no master key")
    registry = DatabaseRegistry(lambda: psycopg.connect(conninfo(config), connect_timeout=CONNECT_SECONDS))
    SqliteKeyStore(key_store_path(config), master, registry).check()


def conninfo(config: Config) -> str:
    """The database as the app role, as libpq takes it."""
    if config.database_url:
        return config.database_url
    return psycopg.conninfo.make_conninfo(host=str(config.socket_dir), port=5432, dbname=DATABASE_NAME, user=APP_ROLE)


def main() -> int:
    try:
        check(read_config(os.environ))
    except (KeyUnavailable, ConfigError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
