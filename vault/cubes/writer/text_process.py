"""The process for long work on texts."""

from collections.abc import Callable
from typing import Any, TypeVar

from governance.child_process import ChildProcess, Refusals
from governance.errors import Unavailable

Result = TypeVar("Result")
PROCESS = ChildProcess(
    Refusals(
        Unavailable,
        slow="The texts of this call took too long to read. Send fewer at once.",
        ended="The process that reads texts has ended. Try again.",
    ),
    seconds=30.0,
)


def run_in_text_process(function: Callable[..., Result], *values: Any) -> Result:
    """Call `function(*values)` in the process; both must pickle. Raises Unavailable and the errors of `function`."""
    return PROCESS.run(function, *values)
