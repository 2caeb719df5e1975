"""The two tenants of tests/factories.py, in the database of the test."""

from collections.abc import Iterator

import pytest
from django.test import override_settings

from tests import factories
from tests.factories import World
from tests.harness.databases import Clone


@pytest.fixture
def world(database: Clone) -> Iterator[World]:
    """acme with its people, and the other tenant."""
    with override_settings(STATIC_ROOT=None):  # nothing is collected, and WhiteNoise warns of a folder that is missing
        yield factories.world()
