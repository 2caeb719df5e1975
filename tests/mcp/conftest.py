"""A client of the REST API, beside the agents."""

import pytest

from tests.factories import World
from tests.vault.api.contract import Contract, contract


@pytest.fixture
def alice(world: World) -> Contract:
    """Editor in acme."""
    return contract(world, "alice")
