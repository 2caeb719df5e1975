"""Processor seconds of a run and of each test file, with all child processes; a run beyond its budget fails.

Wall time says little on a shared machine. costs.json holds what each file has cost; a file may cost twice of that, a
file that is not named SMALL seconds. `--write-costs` writes the file anew.
"""

import json
import resource
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.harness.servers import ServersPlugin

GOAL, LIMIT = 1_800, 2_700  # processor seconds of `make test`; one run took 1,880 and 2,270 on one machine
SMALL = 6.0  # processor seconds; a file below is not named in costs.json
PLACE = Path(__file__).with_name("costs.json")
spent = pytest.StashKey[dict[str, float]]()


@cache
def load_costs(*, full: bool) -> dict[str, float]:
    """Processor seconds of the files that are named in costs.json, in `make test` or in verify-full."""
    found: dict[str, dict[str, float]] = json.loads(PLACE.read_text(encoding="utf-8"))
    return found["verify-full" if full else "test"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-costs", action="store_true", help="write tests/harness/costs.json anew from this run")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[spent] = defaultdict(float)
    config.pluginmanager.register(CostsOfWorkers(config), "memos-costs")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _processor_seconds()
    try:
        return (yield)
    finally:
        item.config.stash[spent][item.nodeid.partition("::")[0]] += _processor_seconds() - before


def _processor_seconds() -> float:
    """Seconds of this process and of its ended children."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


class CostsOfWorkers:
    """Gathers the workers' figures, and in the process that starts them judges the run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.total = 0.0

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        for file, seconds in getattr(node, "workeroutput", {}).get("memos_costs", {}).items():
            self.config.stash[spent][file] += seconds

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        costs = self.config.stash[spent]
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["memos_costs"] = dict(costs)
            return
        servers = self.config.pluginmanager.get_plugin("memos-servers")
        assert isinstance(servers, ServersPlugin)
        servers.end()  # their seconds count once they have ended
        self.total = _processor_seconds()
        if self.config.getoption("--write-costs"):
            self._write()
        if self._is_test() and self.total > LIMIT:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        files = self.config.stash[spent]
        terminalreporter.section("processor seconds")
        terminalreporter.line(f"{self.total:.0f} in all (goal of make test {GOAL}, limit {LIMIT}), of these in files:")
        for file, seconds in sorted(files.items(), key=lambda item: -item[1])[:20]:
            terminalreporter.line(f"{seconds:7.1f}  {file}")
        over = {file: seconds for file, seconds in files.items() if seconds > self._budget(file)}
        if self._is_test() and self.total > LIMIT:
            terminalreporter.line(
                f"*** THE RUN IS OVER ITS LIMIT; FILES OVER THEIR BUDGET: {', '.join(over) or 'none'}"
            )

    def _is_test(self) -> bool:
        return not self.config.getoption("--full") and not self.config.getoption("--full-size")

    def _budget(self, file: str) -> float:
        return 2 * load_costs(full=False).get(file, SMALL)

    def _write(self) -> None:
        kinds = {full: load_costs(full=full) for full in (False, True)}
        ran = {file: round(seconds) for file, seconds in self.config.stash[spent].items()}
        kept = {file: seconds for file, seconds in kinds[not self._is_test()].items() if file not in ran}
        kinds[not self._is_test()] = kept | {file: seconds for file, seconds in ran.items() if seconds >= SMALL}
        named = {"test": kinds[False], "verify-full": kinds[True]}
        PLACE.write_text(json.dumps(named, indent=1, sort_keys=True) + "\n", encoding="utf-8")
