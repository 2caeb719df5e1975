"""Facts of the kernel about processes."""

from pathlib import Path


def descendants(pid: int) -> dict[int, str]:
    """Number → command line of every living process below `pid`."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        parent = _parent(int(entry.name))
        if parent is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found: dict[int, str] = {}
    waiting = list(children.get(pid, []))
    while waiting:
        child = waiting.pop()
        found[child] = _command_line(child)
        waiting += children.get(child, [])
    return found


def is_alive(pid: int) -> bool:
    """Return whether the process runs; an ended one that its parent has not collected does not."""
    return _parent(pid) is not None


def _parent(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[1])


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
