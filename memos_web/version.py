"""The version of the product, which `pyproject.toml` states."""

import tomllib
from pathlib import Path

VERSION: str = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "version"
]
