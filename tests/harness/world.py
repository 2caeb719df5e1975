"""The two tenants of tests/factories.py, in the database of the test."""

import pytest

from tests import factories
from tests.factories import World
from tests.harness.databases import Clone


@pytest.fixture
def world(database: Clone) -> World:
    """acme with its people, and the other tenant."""
    return factories.world()
