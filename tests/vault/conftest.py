"""The people of the tests' world as clients of the API; every reply they get is held against the OpenAPI document."""

import pytest

from tests.factories import World
from tests.vault.api.contract import Contract, contract


@pytest.fixture
def olivia(world: World) -> Contract:
    """Owner of acme."""
    return contract(world, "olivia")


@pytest.fixture
def alice(world: World) -> Contract:
    """Editor in acme."""
    return contract(world, "alice")


@pytest.fixture
def bob(world: World) -> Contract:
    """Viewer in acme."""
    return contract(world, "bob")


@pytest.fixture
def ada(world: World) -> Contract:
    """Auditor in acme."""
    return contract(world, "ada")


@pytest.fixture
def charlie(world: World) -> Contract:
    """Owner of the other tenant."""
    return contract(world, "charlie")
