"""mem0's package, imported when a test first asks for it: the import takes seconds."""

import importlib
import os
import tempfile
from functools import cache
from typing import Any


@cache
def mem0_module(name: str = "mem0") -> Any:
    """The module `name` of mem0, which at its import writes a folder and calls home unless it is told otherwise."""
    os.environ |= {"MEM0_DIR": tempfile.mkdtemp(prefix="mem0-"), "MEM0_TELEMETRY": "False"}
    return importlib.import_module(name)
