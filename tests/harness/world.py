"""The two tenants of tests/factories.py, in the database of the test."""

from copy import deepcopy

import pytest

from tests.factories import World
from tests.harness.databases import Clone, Founded


@pytest.fixture
def world(database: Clone, founded: Founded) -> World:
    """acme with its people, and the other tenant: already in `database`, which is a clone of theirs."""
    return deepcopy(founded.world)  # a test may change what it is handed
