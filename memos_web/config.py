"""Configuration from the environment, read once and typed; unknown settings are refused with one line."""

import base64
import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from governance.redis_address import SENTINEL_SCHEMES, sentinels_read

DEFAULT_DATA_DIR = Path(__file__).resolve().parents[1] / "var"
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # what listens on the first answers at the second
# What the Python client and memos-mcp read. A shell that starts a server may have them, too.
OF_CLIENTS = frozenset({"MEMOS_URL", "MEMOS_API_KEY"})
# What the engine reads (engine/memos_engine/settings.py).
OF_ENGINE = frozenset(
    f"MEMOS_ENGINE_{name}" for name in ("CACHE_MB", "DTYPE", "HOST", "MODEL", "PORT", "QUEUE", "THREADS", "TOKEN")
)
KNOWN_VARIABLES = frozenset(
    {
        "MEMOS_ALLOWED_HOSTS",
        "MEMOS_ALLOW_PRIVATE_ADDRESSES",
        "MEMOS_BACKUP_DAYS",
        "MEMOS_BACKUP_STORE_KEY",
        "MEMOS_BACKUP_STORE_REGION",
        "MEMOS_BACKUP_STORE_URL",
        "MEMOS_BLOB_STORE",
        "MEMOS_BLOB_STORE_KEY",
        "MEMOS_BLOB_STORE_REGION",
        "MEMOS_BLOB_STORE_URL",
        "MEMOS_DATABASE_ROLE",
        "MEMOS_DATA_DIR",
        "MEMOS_EMBEDDER",
        "MEMOS_EMBEDDER_KEY",
        "MEMOS_EMBEDDER_URL",
        "MEMOS_HOST",
        "MEMOS_KEY_STORE_URL",
        "MEMOS_LLM_KEY",
        "MEMOS_LLM_MODEL",
        "MEMOS_LLM_ADAPTERS",
        "MEMOS_LLM_ENGINE",
        "MEMOS_LLM_READS",
        "MEMOS_LLM_URL",
        "MEMOS_LOG_FORMAT",
        "MEMOS_MAIL_FROM",
        "MEMOS_MAIL_URL",
        "MEMOS_MASTER_KEY",
        "MEMOS_METRICS_TOKEN",
        "MEMOS_NEXT_MASTER_KEY",
        "MEMOS_PHONE_REGIONS",
        "MEMOS_PORT",
        "MEMOS_PUBLIC_URL",
        "MEMOS_RERANKER",
        "MEMOS_RERANKER_KEY",
        "MEMOS_RERANKER_URL",
        "MEMOS_SEARCH_WEIGHTS",
        "MEMOS_SECRET_KEY",
        "MEMOS_TRUSTED_PROXY",
        "MEMOS_VECTOR_INDEX",
        "MEMOS_VECTOR_INDEX_FROM",
        "MEMOS_VECTOR_INDEX_TOKEN",
        "MEMOS_WEB_PROCESSES",
    }
)
ENGINES = ("openai", "vllm", "local")
EMBEDDER_FAMILIES = ("universal-sentence-encoder", "wordllama", "sentence-transformers", "openai", "hashing")
RERANKER_FAMILIES = ("sentence-transformers", "openai", "overlap")
SEARCH_WEIGHTS = ("dense", "heat", "trust", "fingerprint")
MOST_WEB_PROCESSES = 4  # each may hold twenty of the embedded server's connections
SHORTEST_TOKEN = 16
PUBLIC_URL = re.compile(
    r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9_~-]+)*|https?://\[[0-9A-Fa-f:.]+\](:[0-9]+)?(/[A-Za-z0-9_~-]+)*"
)
LONGEST_SOCKET_PATH = 90  # bytes; the kernel allows 107, the servers add names of their own


class ConfigError(Exception):
    """The environment asks for something that does not exist; the message is one line for a person."""


@dataclass(frozen=True)
class EmbedderChoice:
    """`family[/model]` of MEMOS_EMBEDDER, and the endpoint that the `openai` family calls."""

    family: str
    model: str
    url: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class RerankerChoice:
    """`family[/model]` of MEMOS_RERANKER, and the endpoint that the `openai` family calls; no family: none is used."""

    family: str
    model: str
    url: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class LlmChoice:
    """An OpenAI-compatible endpoint; an empty `url` means that no model is configured.

    reads: language models also read what people say, and do not answer alone. engine: what serves the model, and so
    which calls it knows beside OpenAI's; adapters: the folder through which vLLM gets adapters.
    """

    url: str
    key: str = field(repr=False)
    model: str
    reads: bool = True
    engine: str = "openai"
    adapters: str = ""


@dataclass(frozen=True)
class BlobStoreChoice:
    """A bucket of a service that speaks S3; an empty `bucket`: a folder of the data directory."""

    bucket: str
    prefix: str
    endpoint: str
    region: str
    key_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class VectorIndexChoice:
    """The address of a Milvus server, or a file of milvus-lite; an empty `address`: vectors are in PostgreSQL alone.

    least: with fewer memories to choose from, a search compares vectors in PostgreSQL.
    """

    address: str = ""
    token: str = field(repr=False, default="")
    least: int = 10_000


@dataclass(frozen=True)
class Mail:
    """The way of mail: the server of MEMOS_MAIL_URL, else files below the data directory."""

    backend: str
    sender: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = field(repr=False, default="")
    tls: bool = False
    starttls: bool = False


@dataclass(frozen=True)
class Config:
    """Everything that the environment decides. Secrets, and addresses that may hold one, are left out of its repr."""

    host: str
    port: int
    data_dir: Path
    public_url: str  # as given; see `address`
    allowed_hosts: tuple[str, ...]
    allow_private_addresses: bool
    trusted_proxy: bool
    database_url: str = field(repr=False)
    database_direct_url: str = field(repr=False)
    database_read_url: str = field(repr=False)
    database_owner_url: str = field(repr=False)
    database_backup_url: str = field(repr=False)
    database_restore_url: str = field(repr=False)
    database_role: str
    redis_url: str = field(repr=False)
    key_store_url: str = field(repr=False)
    llm: LlmChoice
    embedder: EmbedderChoice
    reranker: RerankerChoice
    blob_store: BlobStoreChoice
    backup_store: BlobStoreChoice  # without a bucket, which the commands name
    vector_index: VectorIndexChoice
    search_weights: dict[str, float]
    master_key: bytes | None = field(repr=False)
    secret_key: str = field(repr=False)
    mail: Mail
    phone_regions: tuple[str, ...] = ("CN", "US", "GB")
    web_processes: int = 1
    backup_days: int = 30
    metrics_token: str = field(repr=False, default="")
    log_format: str = "line"
    next_master_key: bytes | None = field(repr=False, default=None)

    @property
    def local_host(self) -> str:
        """Return the address by which this machine reaches the web server."""
        return EVERYWHERE.get(self.host, self.host)

    @property
    def address(self) -> str:
        """Return the base URL of links: MEMOS_PUBLIC_URL, otherwise the listening address.

        A server that listens on all interfaces uses its first allowed host name.
        """
        names = [name for name in self.allowed_hosts if not name.startswith((".", "*"))]
        host = names[0] if names and self.host in EVERYWHERE else self.local_host
        return self.public_url or f"http://{bracket_host(host)}:{self.port}"

    @property
    def socket_dir(self) -> Path:
        """Folder (0700) of the embedded servers' sockets: inside the data directory unless that path is too long."""
        inside = self.data_dir / "run"
        if len(str(inside).encode()) <= LONGEST_SOCKET_PATH:
            return inside
        digest = hashlib.sha256(str(self.data_dir).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"memos-{os.getuid()}-{digest}"


def refuse_lone_owner(config: Config) -> None:
    """Raise ConfigError where the owner of one database would migrate, and the embedded one would serve."""
    if config.database_owner_url and not config.database_url:
        raise ConfigError("DATABASE_OWNER_URL is set without DATABASE_URL: the embedded PostgreSQL would be used")


def bracket_host(host: str) -> str:
    """`host` as it stands in an address."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def read_config(environ: Mapping[str, str]) -> Config:
    """Read and check the whole environment. Raises ConfigError at the first value that cannot be used."""
    known = KNOWN_VARIABLES | OF_CLIENTS | OF_ENGINE
    unknown = sorted(name for name in environ if name.startswith("MEMOS_") and name not in known)
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]}; known are {', '.join(sorted(KNOWN_VARIABLES))}")
    return Config(
        host=environ.get("MEMOS_HOST") or "127.0.0.1",
        port=_port(environ.get("MEMOS_PORT", "8000")),
        data_dir=Path(environ.get("MEMOS_DATA_DIR") or DEFAULT_DATA_DIR).resolve(),
        public_url=_public_url(environ.get("MEMOS_PUBLIC_URL", "")),
        allowed_hosts=tuple(filter(None, map(str.strip, environ.get("MEMOS_ALLOWED_HOSTS", "").split(",")))),
        allow_private_addresses=_flag(
            "MEMOS_ALLOW_PRIVATE_ADDRESSES", environ.get("MEMOS_ALLOW_PRIVATE_ADDRESSES", "no")
        ),
        trusted_proxy=_flag("MEMOS_TRUSTED_PROXY", environ.get("MEMOS_TRUSTED_PROXY", "no")),
        database_url=environ.get("DATABASE_URL", ""),
        database_direct_url=_beside_database(environ, "DATABASE_DIRECT_URL"),
        database_read_url=_beside_database(environ, "DATABASE_READ_URL"),
        database_owner_url=environ.get("DATABASE_OWNER_URL", ""),
        database_backup_url=environ.get("DATABASE_BACKUP_URL", ""),
        database_restore_url=environ.get("DATABASE_RESTORE_URL", ""),
        database_role=_one_of("MEMOS_DATABASE_ROLE", environ.get("MEMOS_DATABASE_ROLE", "app"), ("app", "owner")),
        redis_url=_redis(environ.get("REDIS_URL", "")),
        key_store_url=_key_store_url(environ),
        llm=_llm(environ),
        embedder=_embedder(environ),
        reranker=_reranker(environ),
        blob_store=_blob_store(environ),
        backup_store=_s3_service(environ, "MEMOS_BACKUP_STORE"),
        vector_index=_vector_index(environ),
        search_weights=_weights(environ.get("MEMOS_SEARCH_WEIGHTS", "")),
        master_key=_key("MEMOS_MASTER_KEY", environ.get("MEMOS_MASTER_KEY", "")),
        next_master_key=_key("MEMOS_NEXT_MASTER_KEY", environ.get("MEMOS_NEXT_MASTER_KEY", "")),
        secret_key=environ.get("MEMOS_SECRET_KEY", ""),
        phone_regions=_regions(environ.get("MEMOS_PHONE_REGIONS", "CN,US,GB")),
        mail=_mail(environ),
        web_processes=_web_processes(environ.get("MEMOS_WEB_PROCESSES", "")),
        metrics_token=_metrics_token(environ.get("MEMOS_METRICS_TOKEN", "")),
        log_format=_one_of("MEMOS_LOG_FORMAT", environ.get("MEMOS_LOG_FORMAT") or "line", ("line", "json")),
        backup_days=_backup_days(environ.get("MEMOS_BACKUP_DAYS") or "30"),
    )


def _beside_database(environ: Mapping[str, str], name: str) -> str:
    """Return an address that is used beside that of DATABASE_URL, of the same database and role."""
    url = environ.get(name, "")
    if url and not environ.get("DATABASE_URL"):
        raise ConfigError(f"{name} is set without DATABASE_URL: it is another way to that database")
    return url


def _public_url(text: str) -> str:
    """`SCHEME://HOST[:PORT][/PATH]`, without a final slash."""
    text = text.rstrip("/")
    try:
        url = urlsplit(text)
        usable = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if text and not (usable and PUBLIC_URL.fullmatch(text)):
        raise ConfigError(f"MEMOS_PUBLIC_URL is {text!r}: an address such as https://memos.example/path is needed")
    return text


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ConfigError(f"MEMOS_PORT is {text!r}: a number from 1 to 65535 is needed")
    return int(text)


def _web_processes(text: str) -> int:
    """One for each core where nothing is said, up to MOST_WEB_PROCESSES."""
    if not text:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(cores, MOST_WEB_PROCESSES)
    if not text.isdecimal() or not 1 <= int(text) <= MOST_WEB_PROCESSES:
        raise ConfigError(f"MEMOS_WEB_PROCESSES is {text!r}: a number from 1 to {MOST_WEB_PROCESSES} is needed")
    return int(text)


def _metrics_token(text: str) -> str:
    if text and not (len(text) >= SHORTEST_TOKEN and text.isascii() and text.isprintable() and " " not in text):
        raise ConfigError(
            f"MEMOS_METRICS_TOKEN: at least {SHORTEST_TOKEN} characters of ASCII without spaces are needed"
        )
    return text


def _backup_days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 3650:
        raise ConfigError(f"MEMOS_BACKUP_DAYS is {text!r}: a number from 1 to 3650 is needed")
    return int(text)


def _regions(text: str) -> tuple[str, ...]:
    from phonenumbers import SUPPORTED_REGIONS

    regions = tuple(name for name in text.split(",") if name)
    unknown = [name for name in regions if name not in SUPPORTED_REGIONS]
    if unknown:
        raise ConfigError(f"MEMOS_PHONE_REGIONS names {unknown[0]!r}: ISO 3166 codes are needed, as in CN,US,GB")
    return regions


def _flag(name: str, text: str) -> bool:
    return _one_of(name, text.lower(), ("yes", "no")) == "yes"


def _one_of(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise ConfigError(f"{name} is {text!r}: one of {', '.join(allowed)} is needed")
    return text


def _mail(environ: Mapping[str, str]) -> Mail:
    """`smtp://user:password@host:587` (STARTTLS when the server is not this machine) or `smtps://…:465`."""
    text, sender = environ.get("MEMOS_MAIL_URL", ""), environ.get("MEMOS_MAIL_FROM") or "memos@localhost"
    if not text:
        return Mail(backend="django.core.mail.backends.filebased.EmailBackend", sender=sender)
    try:
        url = urlsplit(text)
        port = url.port or (465 if url.scheme == "smtps" else 587)
    except ValueError as error:
        raise ConfigError("MEMOS_MAIL_URL is not an smtp:// or smtps:// address") from error
    if url.scheme not in {"smtp", "smtps"} or not url.hostname:
        raise ConfigError("MEMOS_MAIL_URL is not an smtp:// or smtps:// address")
    return Mail(
        backend="django.core.mail.backends.smtp.EmailBackend",
        sender=sender,
        host=url.hostname,
        port=port,
        user=unquote(url.username or ""),
        password=unquote(url.password or ""),
        tls=url.scheme == "smtps",
        starttls=url.scheme == "smtp" and url.hostname not in {"localhost", "127.0.0.1", "::1"},
    )


def _redis(url: str) -> str:
    """Each use of Redis appends a database number of its own."""
    try:
        parts = urlsplit(url)
        if "cluster" in parts.scheme:
            raise ConfigError(
                "REDIS_URL names a Redis Cluster: the keys of a queue must be on one server; name that, or sentinels"
            )
        if parts.scheme in SENTINEL_SCHEMES:
            sentinels_read(url)
            usable = "/" not in parts.path.strip("/")
        else:
            usable = parts.scheme in {"redis", "rediss"} and not parts.path.strip("/") and not parts.query
    except ValueError:
        usable = False
    if url and not usable:
        raise ConfigError(
            "REDIS_URL must be redis://[:PASSWORD@]HOST:PORT or sentinel://[:PASSWORD@]HOST,HOST,HOST/SERVICE, "
            "without a database number"
        )
    return url


def _key_store_url(environ: Mapping[str, str]) -> str:
    name = "MEMOS_KEY_STORE_URL"
    databases = {other: environ.get(other, "") for other in ("DATABASE_URL", "DATABASE_OWNER_URL")}
    return check_key_store_url(name, environ[name], databases) if environ.get(name) else ""


def check_key_store_url(name: str, url: str, databases: Mapping[str, str]) -> str:
    """Return the address of a key store. It has a database and a role of its own.

    databases: the addresses of the data by their settings. Raises ConfigError.
    """
    keys = _server_of(name, url)
    for other, address in databases.items():
        data = _server_of(other, address)
        if data["server"] == keys["server"] and data["database"] == keys["database"]:
            raise ConfigError(f"{name} is the database of {other}: keys need a database of their own")
        if data["server"] == keys["server"] and data["user"] == keys["user"]:
            raise ConfigError(f"{name} has the role of {other}: keys need a role of their own")
    return url


def _server_of(name: str, url: str) -> dict[str, str]:
    """Return server, database and user of an address, as libpq reads it."""
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    try:
        given = conninfo_to_dict(url) if urlsplit(url).scheme in {"postgres", "postgresql"} else {}
    except (Error, ValueError):
        given = {}
    if not name.startswith("DATABASE") and not (given.get("user") and given.get("dbname")):
        raise ConfigError(f"{name} is not a postgresql://USER:PASSWORD@HOST/DATABASE address")
    server = f"{given.get('host') or given.get('hostaddr') or ''}:{given.get('port') or '5432'}" if url else ""
    return {"server": server, "database": str(given.get("dbname") or ""), "user": str(given.get("user") or "")}


def _llm(environ: Mapping[str, str]) -> LlmChoice:
    url, model = environ.get("MEMOS_LLM_URL", ""), environ.get("MEMOS_LLM_MODEL", "")
    if url and not model:
        raise ConfigError("MEMOS_LLM_URL is set: name the model in MEMOS_LLM_MODEL too")
    reads = _flag("MEMOS_LLM_READS", environ.get("MEMOS_LLM_READS", "yes"))
    engine = environ.get("MEMOS_LLM_ENGINE", ENGINES[0])
    _one_of("MEMOS_LLM_ENGINE", engine, ENGINES)
    key = environ.get("MEMOS_LLM_KEY", "")
    if engine == "local" and url and not key:
        key = _engine_token(environ)
    adapters = environ.get("MEMOS_LLM_ADAPTERS", "")
    return LlmChoice(url=url, key=key, model=model, reads=reads, engine=engine, adapters=adapters)


def _engine_token(environ: Mapping[str, str]) -> str:
    """Return the token that `make engine` keeps in the data directory; empty if there is none."""
    path = Path(environ.get("MEMOS_DATA_DIR") or DEFAULT_DATA_DIR) / "engine-token"
    return path.read_text().strip() if path.is_file() else ""


def _embedder(environ: Mapping[str, str]) -> EmbedderChoice:
    family, _, model = environ.get("MEMOS_EMBEDDER", EMBEDDER_FAMILIES[0]).partition("/")
    _one_of("MEMOS_EMBEDDER", family, EMBEDDER_FAMILIES)
    if family in {"sentence-transformers", "openai"} and not model:
        raise ConfigError(f"MEMOS_EMBEDDER is {family!r}: name the model too, as in {family}/NAME")
    url = environ.get("MEMOS_EMBEDDER_URL") or environ.get("MEMOS_LLM_URL", "")
    if family == "openai" and not url:
        raise ConfigError("MEMOS_EMBEDDER is openai/…: set MEMOS_EMBEDDER_URL (or MEMOS_LLM_URL) too")
    key = environ.get("MEMOS_EMBEDDER_KEY") or environ.get("MEMOS_LLM_KEY", "")
    return EmbedderChoice(family=family, model=model, url=url, key=key)


def _reranker(environ: Mapping[str, str]) -> RerankerChoice:
    family, _, model = environ.get("MEMOS_RERANKER", "").partition("/")
    if family:
        _one_of("MEMOS_RERANKER", family, RERANKER_FAMILIES)
    if family in {"sentence-transformers", "openai"} and not model:
        raise ConfigError(f"MEMOS_RERANKER is {family!r}: name the model too, as in {family}/NAME")
    beside = _embedder(environ)
    url = environ.get("MEMOS_RERANKER_URL") or beside.url
    if family == "openai" and not url:
        raise ConfigError("MEMOS_RERANKER is openai/…: set MEMOS_RERANKER_URL (or MEMOS_EMBEDDER_URL) too")
    return RerankerChoice(family, model, url=url, key=environ.get("MEMOS_RERANKER_KEY") or beside.key)


def _blob_store(environ: Mapping[str, str]) -> BlobStoreChoice:
    """`s3://BUCKET[/PREFIX]` of MEMOS_BLOB_STORE, the service's address and `ID:SECRET`."""
    text = environ.get("MEMOS_BLOB_STORE", "")
    found = bucket_read(text)
    if text and not found:
        raise ConfigError("MEMOS_BLOB_STORE is no bucket: write s3://BUCKET or s3://BUCKET/PREFIX")
    bucket, prefix = found or ("", "")
    return replace(_s3_service(environ, "MEMOS_BLOB_STORE"), bucket=bucket, prefix=prefix)


def _s3_service(environ: Mapping[str, str], name: str) -> BlobStoreChoice:
    """Read a service that speaks S3, without a bucket: its address, region and `ID:SECRET`."""
    key_id, _, secret = environ.get(f"{name}_KEY", "").partition(":")
    if bool(key_id) != bool(secret):
        raise ConfigError(f"{name}_KEY is no key: write ID:SECRET")
    endpoint = environ.get(f"{name}_URL", "")
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise ConfigError(f"{name}_URL is not an http:// or https:// address")
    return BlobStoreChoice("", "", endpoint, environ.get(f"{name}_REGION", ""), key_id, secret)


def bucket_read(text: str) -> tuple[str, str] | None:
    """Return bucket and prefix of `s3://BUCKET[/PREFIX]`; None if it is something else."""
    found = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9._/-]*))?", text)
    return (found[1], (found[2] or "").strip("/")) if found else None


def _vector_index(environ: Mapping[str, str]) -> VectorIndexChoice:
    """`milvus:http://HOST:19530`, or `milvus:/PATH/NAME.db` for one process alone."""
    text, least = environ.get("MEMOS_VECTOR_INDEX", ""), environ.get("MEMOS_VECTOR_INDEX_FROM") or "10000"
    family, _, address = text.partition(":")
    if text and not (family == "milvus" and re.fullmatch(r"https?://[^\s@]+|/\S+\.db", address)):
        raise ConfigError("MEMOS_VECTOR_INDEX is no index: write milvus:http://HOST:19530 or milvus:/PATH/NAME.db")
    if not least.isdecimal():
        raise ConfigError(f"MEMOS_VECTOR_INDEX_FROM is {least!r}: a number of memories is needed")
    return VectorIndexChoice(address, environ.get("MEMOS_VECTOR_INDEX_TOKEN", ""), int(least))


def _weights(text: str) -> dict[str, float]:
    """`name=number,…` of MEMOS_SEARCH_WEIGHTS."""
    found: dict[str, float] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = pair.partition("=")
        _one_of("MEMOS_SEARCH_WEIGHTS", name, SEARCH_WEIGHTS)
        if not re.fullmatch(r"0(\.\d+)?|1(\.0+)?", number):
            raise ConfigError(f"MEMOS_SEARCH_WEIGHTS is {pair!r}: a number from 0 to 1 is needed, as in {name}=0.3")
        if name in found:
            raise ConfigError(f"MEMOS_SEARCH_WEIGHTS names {name} twice: give it one weight")
        found[name] = float(number)
    return found


def _key(name: str, text: str) -> bytes | None:
    if not text:
        return None
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ConfigError(f"{name} must be 32 bytes in base64")
    return key
