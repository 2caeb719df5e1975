"""The tests of a run: `make test` takes a share of them that is proved at every change, `make verify-full` the rest.

Marked `full`: left to verify-full. Marked `sampled(n)`: make test runs n of the function's cases, drawn by the seed,
verify-full all of them. With `--full-size`, tests that take the fixture `full_size` run at the size of their promise.
verify-full can be run in parts of about equal cost. CI runs one of them, which the commit chooses.
"""

import random
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.harness.costs import load_costs

PARTS = 8
SLOW_FOLDERS = frozenset({"attacks", "browser", "embedded", "faults", "journeys", "production"})  # folders below tests/
# Tests that share what takes seconds to start: a file of these folders, or of such a test, stays in one process.
ALIKE_FOLDERS = SLOW_FOLDERS | {"benchmarks", "clients", "docs_site", "examples", "mcp", "mem0", "product"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--without-servers", action="store_true", help="run only tests that need no server: seconds")
    parser.addoption("--full", action="store_true", help="run what `make test` leaves out")
    parser.addoption("--part", help=f"with --full: one of {PARTS} parts, by its number, or `commit` for the commit's")
    parser.addoption("--room", help="run the tests of this room, as in vault/chat, and of the rooms above it")
    parser.addoption("--full-size", action="store_true", help="use the full sizes of the promises; takes hours")
    parser.addoption("--seed", type=int, help="draws the cases of sampled tests (default: from the commit)")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--seed") is None:
        given = getattr(config, "workerinput", {}).get("memos_seed")
        config.option.seed = _seed_of_commit(config.rootpath) if given is None else given
    part = config.getoption("--part")
    if part is not None:
        config.option.part = config.option.seed % PARTS + 1 if part == "commit" else int(part)
        if not 1 <= config.option.part <= PARTS:
            raise pytest.UsageError(f"--part is a number from 1 to {PARTS}")
    config.pluginmanager.register(SeedOfWorkers(), "memos-seed")


class SeedOfWorkers:
    """Hands the seed to the worker processes."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        node.workerinput["memos_seed"] = node.config.getoption("--seed")  # type: ignore[attr-defined]


def _seed_of_commit(folder: Path) -> int:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
    return int(head.stdout[:8] or "0", 16)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the folders of rooms that do not see the room of `--room`."""
    room, parts = config.getoption("--room"), collection_path.relative_to(config.rootpath).parts[1:]
    if not room or not collection_path.is_dir() or not parts:
        return None
    above = rooms_above(room, config.rootpath)
    return None if any(parts[:2] == path[: len(parts)] for path in above) else True


@cache
def rooms_above(room: str, root: Path) -> frozenset[tuple[str, ...]]:
    """Return ("vault", "chat") and each room above it in the layers of pyproject.toml, as (package, room)."""
    package, _, name = room.partition("/")
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = {contract["containers"][0]: contract["layers"] for contract in contracts if "containers" in contract}
    rooms = [{part.split(".")[0] for part in re.split(r"[|:\s]+", layer)} for layer in layers.get(package, [])]
    lowest = max((number for number, names in enumerate(rooms) if name in names), default=None)
    if lowest is None:
        raise pytest.UsageError(f"--room: there is no room {room}")
    above = {(package, other) for names in rooms[: lowest + 1] for other in names}
    vault = {("vault", part) for layer in layers["vault"] for part in re.split(r"[|\s]+", layer)}
    return frozenset(above | (vault if package == "governance" else set()))


def pytest_report_header(config: pytest.Config) -> str:
    part = config.getoption("--part")
    chosen = f"part {part} of {PARTS} of verify-full" if part else "verify-full" if config.getoption("--full") else ""
    return f"{chosen or 'make test'}: cases drawn with --seed={config.getoption('--seed')}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the options leave out; put costly files first, so that no worker ends with one of them."""
    chosen = set(_choose(config, items))
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    costs = load_costs(full=config.getoption("--full"))
    items[:] = [item for item in items if item in chosen]
    items.sort(key=lambda item: -costs.get(_file(item), 0))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _choose(config: pytest.Config, items: Sequence[pytest.Item]) -> Iterable[pytest.Item]:
    if config.getoption("--without-servers"):
        return [item for item in items if not _is_slow(item)]
    if not config.getoption("--full"):
        return sample_of_cases(
            [item for item in items if not item.get_closest_marker("full")], config.getoption("--seed")
        )
    left_out = [item for item in items if _is_left_out(item)]
    part = config.getoption("--part")
    return left_out if part is None else part_of_full(left_out, part)


def _is_slow(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("full") or item.get_closest_marker("long")
    return bool(marked) or _folder(item) in SLOW_FOLDERS or "servers" in _fixtures(item)


def _is_left_out(item: pytest.Item) -> bool:
    """Return whether `make test` leaves the test out, or runs it as one of a sample or at a smaller size."""
    marked = item.get_closest_marker("full") or item.get_closest_marker("sampled")
    return bool(marked) or (item.config.getoption("--full-size") and "full_size" in _fixtures(item))


def sample_of_cases(items: Sequence[pytest.Item], seed: int) -> Iterable[pytest.Item]:
    """Draw the cases of functions marked `sampled`; all other tests."""
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[_function(item)].append(item)
        else:
            yield item
    for function, found in cases.items():
        marker = found[0].get_closest_marker("sampled")
        assert marker is not None
        yield from random.Random(f"{seed} {function}").sample(found, min(marker.args[0], len(found)))


def part_of_full(items: Sequence[pytest.Item], part: int) -> Iterable[pytest.Item]:
    """The tests of the files that belong to this part: the costliest file goes to the part with the least so far."""
    costs, loads = load_costs(full=True), [0.0] * PARTS
    files = sorted({_file(item) for item in items}, key=lambda file: (-costs.get(file, 1), file))
    part_of = dict[str, int]()
    for file in files:
        least = loads.index(min(loads))
        loads[least] += costs.get(file, 1)
        part_of[file] = least + 1
    return [item for item in items if part_of[_file(item)] == part]


def _group(item: pytest.Item) -> str:
    """Name what runs in one process: a file whose tests share a costly start, else a function with its cases."""
    if "running_server" in _fixtures(item):
        return "running_server"
    return _file(item) if _folder(item) in ALIKE_FOLDERS else _function(item)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(item.config.rootpath).parts[1]


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _fixtures(item: pytest.Item) -> Sequence[str]:
    return item.fixturenames if isinstance(item, pytest.Function) else ()


@pytest.fixture(scope="session")
def full_size(pytestconfig: pytest.Config) -> bool:
    """Return whether this run uses the full sizes of the promises."""
    return bool(pytestconfig.getoption("--full-size"))
