"""Data of an installation about itself in its data directory: two secrets, and its address.

`up` writes all of it. Whatever else runs on the directory reads, and makes nothing.
"""

import base64
import os
import secrets
from contextlib import suppress
from pathlib import Path

from memos_web.config import Config, ConfigError

SECRETS = ("master.key", "django.key")
NEXT = "master.key.next"


def missing(config: Config) -> str:
    """Return in one line why commands cannot use the data directory yet; empty once `up` has been started on it."""
    needed = [config.master_key is None, not config.secret_key]
    lacking = [_read(_secret(config, name)) is None for name, wanted in zip(SECRETS, needed, strict=True) if wanted]
    if config.data_dir.is_dir() and not any(lacking):
        return ""
    if needs_lost_master_key(config):
        return lost_master_key(config)
    return f"there is no installation at {config.data_dir}: `manage.py up` makes one, MEMOS_DATA_DIR says where"


def master_key(config: Config) -> bytes | None:
    """32 bytes that wrap every tenant's key. MEMOS_MASTER_KEY, else `<data dir>/keys/master.key`."""
    text = _read(_secret(config, "master.key")) if config.master_key is None else None
    return base64.b64decode(text) if text else config.master_key


def secret_key(config: Config) -> str:
    """Django's signing key. MEMOS_SECRET_KEY, else `<data dir>/keys/django.key`; without one Django signs nothing."""
    return config.secret_key or _read(_secret(config, "django.key")) or ""


def needs_lost_master_key(config: Config) -> bool:
    """Return whether keys or a database were made under a master key that is missing."""
    used = [key_store_path(config), config.data_dir / "pg"]
    lost = config.master_key is None and _read(_secret(config, "master.key")) is None
    return lost and any(path.exists() for path in used)


def lost_master_key(config: Config) -> str:
    """The refusal to work without the master key, in one line."""
    return f"{_secret(config, 'master.key')} is missing: restore the file, or set MEMOS_MASTER_KEY"


def secrets_make(config: Config) -> str:
    """Make what the environment does not give and no earlier start has left; returns what people should know of it.

    Nothing is sealed under Django's key: a new one beside existing data ends all sessions and opens nothing.
    Raises ConfigError, also where the master key of existing data is lost: a new one would open none of it.
    """
    if needs_lost_master_key(config):
        raise ConfigError(lost_master_key(config))
    notice = ""
    for name, given in zip(SECRETS, (config.master_key, config.secret_key), strict=True):
        path = _secret(config, name)
        if not given and _read(path) is None:
            _write(path, base64.b64encode(secrets.token_bytes(32)).decode())
            if name == "django.key" and key_store_path(config).exists():
                notice = f"{path} was missing: a new one was made, and everybody has to sign in again"
    return notice


def public_url(config: Config) -> str:
    """The address in links: MEMOS_PUBLIC_URL, else where the server of this data directory was started last."""
    return config.public_url or _read(_address(config)) or config.address


def address_write(config: Config) -> None:
    """Tell the commands beside this server where it is reached. Raises ConfigError."""
    _write(_address(config), config.address)


def key_store_path(config: Config) -> Path:
    return config.data_dir / "keys" / "keystore.sqlite3"


def _secret(config: Config, name: str) -> Path:
    return config.data_dir / "keys" / name


def _address(config: Config) -> Path:
    return config.data_dir / "address"


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; MEMOS_DATA_DIR says where to look") from error


def _write(path: Path, text: str) -> None:
    """The file appears whole, and is durable: without the master key nothing can be read again."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            draft.unlink()
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def next_master_key(config: Config) -> bytes:
    """The next master key: MEMOS_NEXT_MASTER_KEY, else a file beside the present one, made on demand.

    Raises ConfigError where the present one comes from the environment and the next does not, or is the same.
    """
    if config.next_master_key is not None:
        if config.next_master_key == master_key(config):
            raise ConfigError("MEMOS_NEXT_MASTER_KEY is the present master key: set another one, or leave it out")
        return config.next_master_key
    if config.master_key is not None:
        raise ConfigError("set MEMOS_NEXT_MASTER_KEY: the present master key comes from the environment too")
    path = _secret(config, NEXT)
    if _read(path) is None:
        _write(path, base64.b64encode(secrets.token_bytes(32)).decode())
    return base64.b64decode(_read(path) or "")


def next_master_key_use(config: Config) -> bool:
    """Put the file of the next master key in the place of the present one; False where the environment gives them.

    Raises ConfigError.
    """
    path = _secret(config, NEXT)
    if config.next_master_key is not None or _read(path) is None:
        return False
    try:
        path.replace(_secret(config, "master.key"))
    except OSError as error:
        raise ConfigError(f"cannot replace {_secret(config, 'master.key')}: {error.strerror}") from error
    return True
