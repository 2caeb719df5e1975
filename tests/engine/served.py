"""SmolLM2 on the local engine, served for the tests of a module."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.harness.product import free_port, wait_until

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "engine" / ".venv"  # its model is prepared there once, for all test runs
NAME, TOKEN = "SmolLM2-135M-Instruct", "a token of this test"
START_SECONDS = 300


def is_served_here() -> bool:
    """Return whether the environment of the engine is installed."""
    return (ENVIRONMENT / ".filled").exists()


@contextmanager
def serve_smollm(log: Path, **environ: str) -> Iterator[str]:
    """Serve SmolLM2; its base address. log: the file of its output."""
    port = free_port()
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "memos_engine", "--port", str(port)]
    own = {"MEMOS_DATA_DIR": str(ENVIRONMENT), "MEMOS_ENGINE_TOKEN": TOKEN, **environ}
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT / "engine", stdout=output, stderr=output, env={**os.environ, **own}
        )
    try:
        wait_until(
            lambda: _answers(f"http://127.0.0.1:{port}/health"),
            seconds=START_SECONDS,
            why=log.read_text,
            give_up=lambda: process.poll() is not None,
        )
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False
