"""Prerequisites of tests: what `make test` installs must be there in CI, and nothing is left out in silence.

A skipped test is a failed one where CI is set. Marked `apart(present, needs)`: the test needs what no target of the
Makefile's tests installs; where that is not present, the test is not selected, and the end of the run says so.
"""

import os
from collections.abc import Generator

import pytest

IN_CI = bool(os.environ.get("CI"))
left_out = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[left_out] = {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests whose marker `apart` says that what they need is not present."""
    for item in items:
        for marker in item.iter_markers("apart"):
            present, needs = marker.args
            if not present:
                config.stash[left_out][item.nodeid] = needs
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in config.stash[left_out]])
    items[:] = [item for item in items if item.nodeid not in config.stash[left_out]]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips itself, in CI."""
    report = yield
    fail_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a module that skips itself, in CI."""
    report = yield
    fail_in_ci(report)
    return report


def fail_in_ci(report: pytest.TestReport | pytest.CollectReport, in_ci: bool = IN_CI) -> None:
    """Turn a skipped report into a failed one, if this run is CI's."""
    if in_ci and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"a prerequisite is missing: {report.longrepr}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["memos_left_out"] = session.config.stash[left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    config: pytest.Config = node.config  # type: ignore[attr-defined]
    config.stash[left_out].update(getattr(node, "workeroutput", {}).get("memos_left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name, needs in config.stash[left_out].items():
        terminalreporter.line(f"NOT RUN HERE: {name}: {needs}")
