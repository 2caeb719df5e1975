"""Which tests of a run are run, and in which order."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for --full-size alone; begin with the long files, which would else be what a run ends with."""
    if not config.getoption("--full-size"):
        left_out = [item for item in items if item.get_closest_marker("full_size")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)
