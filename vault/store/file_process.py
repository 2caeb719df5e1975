"""The process that reads files which people send: never the web process, and bounded in time and memory."""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from governance.child_process import ChildProcess, Refusals
from governance.errors import Invalid

SECONDS = 30.0
MEMORY_BYTES = 768 * 1024 * 1024
Result = TypeVar("Result")
PROCESS = ChildProcess(
    Refusals(
        Invalid,
        slow="The file takes too long or too much memory to read. Split it.",
        ended="The file cannot be read in the time and memory that a file has. Split it.",
    ),
    seconds=SECONDS,
    memory_bytes=MEMORY_BYTES,
    niceness=5,
)


def run_in_file_process(tenant_id: UUID, function: Callable[..., Result], *values: Any) -> Result:
    """Call `function(*values)` in the process; both must pickle. Of a tenant one file at a time is read.

    Raises Invalid for a file beyond the bounds; Unavailable if others keep the process busy; the errors of `function`.
    """
    return PROCESS.run(function, *values, caller=tenant_id)
