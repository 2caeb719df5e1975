"""DATABASES and Redis addresses, from URLs or from the sockets of the embedded servers."""

import sys
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from governance.redis_address import VERIFIED, is_sentinel, sentinels_read
from memos_web.config import Config, ConfigError

DATABASE_NAME = "memos"
OWNER_ROLE = "memos_owner"
APP_ROLE = "memos_app"
# The server then ends the sessions of a machine that is gone within a minute; other nodes see it for so long.
ENDS_LOST_SESSIONS = "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
BROKER_OPTIONS: dict[str, Any] = {"visibility_timeout": 3600, "socket_timeout": 5, "socket_connect_timeout": 0.5}
POOL = {"min_size": 1, "max_size": 22, "timeout": 10}
# A replica that does not answer is soon replaced by the primary.
OTHER_POOLS = {"direct": {**POOL, "min_size": 0}, "replica": {**POOL, "min_size": 0, "timeout": 2}}


def databases(config: Config) -> dict[str, dict[str, Any]]:
    """Return DATABASES: `default` as the app role, or as the owner for migrations.

    `direct`, where DATABASE_URL is a pooler that gives a server's session for one transaction: for what a session
    holds. `replica`, where there is one: a server that only reads.
    """
    owner = config.database_role == "owner"
    if not config.database_url:
        entry = _make_embedded_entry(config, OWNER_ROLE if owner else APP_ROLE)
    elif owner:
        entry = _make_entry_of_url("DATABASE_OWNER_URL", config.database_owner_url)
    else:
        entry = _make_entry_of_url("DATABASE_URL", config.database_url)
    if owner:
        return {"default": _complete(entry, config)}
    pooled = {"default": _complete(entry, config, is_pooled=bool(config.database_direct_url))}
    more = {"direct": config.database_direct_url, "replica": config.database_read_url}
    names = {"direct": "DATABASE_DIRECT_URL", "replica": "DATABASE_READ_URL"}
    given = {alias: _make_entry_of_url(names[alias], url) for alias, url in more.items() if url}
    for each in given.values():
        each["TEST"] = {"MIRROR": "default"}
    return pooled | {alias: _complete(each, config, pool=OTHER_POOLS[alias]) for alias, each in given.items()}


def _complete(
    entry: dict[str, Any], config: Config, *, is_pooled: bool = False, pool: dict[str, int] | None = None
) -> dict[str, Any]:
    """Return an entry with what all have in common. pool: other than POOL."""
    entry["CONN_MAX_AGE"] = 0
    entry.setdefault("OPTIONS", {})
    # Statements are prepared explicitly, with one plan each: governance/prepared.py.
    entry["OPTIONS"]["prepare_threshold"] = sys.maxsize
    entry["OPTIONS"]["options"] = f"{entry['OPTIONS'].get('options', '')} -c plan_cache_mode=force_generic_plan".strip()
    if config.database_url:
        entry["OPTIONS"]["options"] += f" {ENDS_LOST_SESSIONS}"
    if is_pooled:
        # The next transaction may be another server's session: it has no statements of this one, and its settings are
        # those of the role (deploy/roles.sql).
        del entry["OPTIONS"]["options"]
        entry["OPTIONS"]["prepare_threshold"] = None
        entry["DISABLE_SERVER_SIDE_CURSORS"] = True
    if config.database_role != "owner":
        entry["OPTIONS"]["pool"] = pool or POOL
    return entry


def redis_address(config: Config, database: int) -> str:
    """Return the address of a Redis database, in the form that Django and redis-py read."""
    if config.redis_url:
        place, separator, options = config.redis_url.partition("?")
        return f"{place.rstrip('/')}/{database}{separator}{options}"
    return f"unix://{config.socket_dir / 'redis.sock'}?db={database}"


def broker_settings(config: Config) -> dict[str, Any]:
    """Return Celery's settings for the first Redis database. Celery alone would not verify certificates."""
    address, options, tls = redis_address(config, 0), dict(BROKER_OPTIONS), False
    if not config.redis_url:
        broker = f"redis+socket://{config.socket_dir / 'redis.sock'}?virtual_host=0"
    elif is_sentinel(address):
        given = sentinels_read(address)
        broker, tls = given.broker_address(), given.tls
        times = {name: options[name] for name in ("socket_timeout", "socket_connect_timeout")}
        options |= {"master_name": given.service, "sentinel_kwargs": {**times, **given.sentinel_options}}
    else:
        broker, tls = address, address.startswith("rediss:")
    return {
        "CELERY_BROKER_URL": broker,
        "CELERY_BROKER_TRANSPORT_OPTIONS": options,
        **({"CELERY_BROKER_USE_SSL": VERIFIED} if tls else {}),
    }


def _make_embedded_entry(config: Config, user: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": DATABASE_NAME,
        "USER": user,
        "HOST": str(config.socket_dir),
        "PORT": "5432",
    }


def _make_entry_of_url(name: str, url: str) -> dict[str, Any]:
    """Read an address as libpq does: of several hosts, the first that fits `target_session_attrs` is used."""
    if not url:
        raise ConfigError(f"{name} is not set")
    if urlsplit(url).scheme not in {"postgres", "postgresql"}:
        raise ConfigError(f"{name} is not a postgresql:// address")
    try:
        given = dict(conninfo_to_dict(url))
    except psycopg.Error as error:
        raise ConfigError(f"{name} is not a postgresql:// address") from error
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    values = {setting: str(given.pop(key, None) or "") for setting, key in names.items()}
    if not all(port.isdecimal() for port in values["PORT"].split(",") if port):
        raise ConfigError(f"{name} is not a postgresql:// address")
    return {"ENGINE": "django.db.backends.postgresql", **values, "OPTIONS": given}
