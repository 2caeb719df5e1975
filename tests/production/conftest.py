"""One installation for all tests of the production path; each test leaves it running."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.scratch import scratch_place
from tests.production.site import Site


@pytest.fixture(scope="module")
def servers_only() -> Iterator[Site]:
    """PostgreSQL and Redis over TCP; roles and passwords made by deploy/init-database.sh; nothing migrated."""
    site = Site(folder=Path(tempfile.mkdtemp(prefix="memos-site-", dir=scratch_place())))
    try:
        site.start_servers()
        made = site.make_roles()
        assert made.returncode == 0, made.stderr
        yield site
    finally:
        site.stop()
        shutil.rmtree(site.folder)


@pytest.fixture(scope="module")
def site(servers_only: Site) -> Site:
    """The same with tables, made by the owner, and web, worker and beat."""
    migrated = servers_only.manage("migrate", "--noinput", "--verbosity", "0", environ=servers_only.owner_environ())
    assert migrated.returncode == 0, migrated.stderr
    servers_only.start_product()
    return servers_only
