"""Selection and order of the tests in a run."""

import pytest

SLOW_FOLDERS = frozenset({"attacks", "browser", "embedded", "faults", "journeys", "production"})  # folders below tests/


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--without-servers", action="store_true", help="run only tests that need no server: seconds")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the options leave out, and put long files first, so that no worker ends with one of them."""
    deselected = [item for item in items if not _is_selected(config, item)]
    config.hook.pytest_deselected(items=deselected)
    left_out = set(deselected)
    items[:] = [item for item in items if item not in left_out]
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


def _is_selected(config: pytest.Config, item: pytest.Item) -> bool:
    if item.get_closest_marker("full_size") and not config.getoption("--full-size"):
        return False
    if not config.getoption("--without-servers"):
        return True
    folder = item.path.relative_to(config.rootpath).parts[1]
    is_slow = folder in SLOW_FOLDERS or item.get_closest_marker("long") is not None
    return not is_slow and "servers" not in getattr(item, "fixturenames", ())
