"""The tests of the local engine, in its own environment: tiny models with random weights (`engine/tests`)."""

import os
import subprocess
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "engine"
PYTHON = ENGINE / ".venv" / "bin" / "python"
LOCKS = ("requirements.txt", "weights.txt")


def is_installed() -> bool:
    """Return whether the environment was filled from the locks of this checkout."""
    filled = ENGINE / ".venv" / ".filled"
    return filled.exists() and filled.read_bytes() == b"".join((ENGINE / name).read_bytes() for name in LOCKS)


@pytest.mark.apart(is_installed(), "make engine-environment")
def test_engine_passes_its_own_tests() -> None:
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ENGINE, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6_000:]
    assert "skipped" not in done.stdout.splitlines()[-1]


def test_engine_opens_no_pickles() -> None:
    source = "".join(path.read_text() for path in (ENGINE / "memos_engine").glob("*.py"))
    for word in ("pickle", "torch.load(", "torch.save(", "trust_remote_code"):
        assert word not in source
