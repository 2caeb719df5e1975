"""Addresses of Redis: of one server, or of sentinels that name the primary among several.

`sentinel://[[USER]:PASSWORD@]HOST[:26379],HOST…/SERVICE[/DATABASE][?sentinel_password=…]`, and `sentinels://` with TLS.
The part before the hosts is for the servers.
"""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

SENTINEL_SCHEMES = {"sentinel": False, "sentinels": True}  # and whether they speak TLS
SENTINEL_PORT = 26379
VERIFIED = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}  # by the authorities that Python trusts


@dataclass(frozen=True)
class Sentinels:
    """The sentinels of a service, and what its servers ask for."""

    hosts: tuple[tuple[str, int], ...]
    service: str
    database: int
    tls: bool
    user: str
    password: str = field(repr=False)
    sentinel_password: str = field(repr=False)

    @property
    def sentinel_options(self) -> dict[str, Any]:
        """Return what redis-py connects to a sentinel with."""
        tls = {"ssl": True, **VERIFIED} if self.tls else {}
        return {"password": self.sentinel_password or None, "retry": Retry(NoBackoff(), 0), **tls}

    def broker_address(self) -> str:
        """Return the address in the form that Celery reads."""
        user = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.password else ""
        hosts = (f"[{host}]" if ":" in host else host for host, _ in self.hosts)
        ports = (port for _, port in self.hosts)
        return ";".join(
            f"sentinel://{user}{host}:{port}/{self.database}" for host, port in zip(hosts, ports, strict=True)
        )


def is_sentinel(address: str) -> bool:
    return urlsplit(address).scheme in SENTINEL_SCHEMES


def sentinels_read(address: str) -> Sentinels:
    """Read an address of sentinels. Raises ValueError."""
    scheme, place, path, query, _ = urlsplit(address)
    login, _, hosts = place.rpartition("@")
    user, _, password = login.partition(":")
    service, _, database = path.strip("/").partition("/")
    asked = parse_qs(query, strict_parsing=bool(query))
    if not service or not (database or "0").isdecimal() or set(asked) - {"sentinel_password"}:
        raise ValueError("a service, and no other options, are expected")
    found = [urlsplit(f"//{host}") for host in hosts.split(",")]
    return Sentinels(
        hosts=tuple((_host(each.hostname), each.port or SENTINEL_PORT) for each in found),
        service=unquote(service),
        database=int(database or 0),
        tls=SENTINEL_SCHEMES[scheme],
        user=unquote(user),
        password=unquote(password),
        sentinel_password=asked.get("sentinel_password", [""])[0],
    )


def redis_client(address: str, *, timeout: float, **options: Any) -> redis.Redis:
    """Return a client that tries once: with sentinels, of the server that they name when it connects.

    timeout: seconds for an answer, and for a connection to each. Raises ValueError.
    """
    times = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    options["retry"] = Retry(NoBackoff(), 0)
    if not is_sentinel(address):
        return redis.Redis.from_url(address, **times, **options)
    given = sentinels_read(address)
    login = {"username": given.user or None, "password": given.password or None, "db": given.database}
    manager: Any = Sentinel(  # type: ignore[no-untyped-call]
        given.hosts, sentinel_kwargs={**times, **given.sentinel_options}
    )
    tls = {"ssl": True, **VERIFIED} if given.tls else {}
    client: redis.Redis = manager.master_for(given.service, redis.Redis, **times, **login, **tls, **options)
    return client


def count_sentinels(address: str, *, timeout: float) -> tuple[int, int]:
    """Return the number of sentinels that know a primary of the service now, and the number of all."""
    given = sentinels_read(address)
    answering = 0
    for host, port in given.hosts:
        options = {**given.sentinel_options, "socket_timeout": timeout, "socket_connect_timeout": timeout}
        client = redis.Redis(host=host, port=port, **options)
        try:
            answering += bool(client.sentinel_get_master_addr_by_name(given.service))
        except redis.RedisError:
            continue  # it is one of those that do not answer
        finally:
            client.close()
    return answering, len(given.hosts)


def _host(name: str | None) -> str:
    if not name:
        raise ValueError("a sentinel has no host")
    return name
