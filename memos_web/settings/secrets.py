"""The two secrets of an installation: from the environment, else from files (0600) made at the first start."""

import base64
import os
import secrets
from contextlib import suppress
from pathlib import Path

from memos_web.config import Config, ConfigError


def master_key(config: Config) -> bytes:
    """32 bytes that wrap every tenant's key. MEMOS_MASTER_KEY, else `<data dir>/keys/master.key`."""
    if config.master_key is not None:
        return config.master_key
    text = _read_or_make(config.data_dir / "keys" / "master.key")
    return base64.b64decode(text)


def secret_key(config: Config) -> str:
    """Django's signing key. MEMOS_SECRET_KEY, else `<data dir>/keys/django.key`."""
    return config.secret_key or _read_or_make(config.data_dir / "keys" / "django.key")


def _read_or_make(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return _make(path)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error


def _make(path: Path) -> str:
    """Two processes may start at once: the file appears whole, by link, and the first one made counts."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(base64.b64encode(secrets.token_bytes(32)).decode())
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    return path.read_text(encoding="ascii").strip()
