"""An installation whose programs are killed."""

from collections.abc import Iterator

import pytest

from tests.harness.product import RunningServer, installation
from tests.harness.servers import Servers


@pytest.fixture(scope="session")
def victim(servers: Servers) -> Iterator[RunningServer]:
    """A started installation, shared by the tests of one worker that kill its programs."""
    with installation(servers.cluster) as server:
        server.start()
        yield server
