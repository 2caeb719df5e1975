"""A managed PostgreSQL, whose administrator may make roles and databases and is no superuser."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.harness.scratch import scratch_place
from tests.production.site import Site

ADMIN = "provider"


@pytest.fixture
def managed() -> Iterator[Site]:
    site = Site(folder=Path(tempfile.mkdtemp(prefix="memos-site-", dir=scratch_place())))
    try:
        site.start_servers()
        with psycopg.connect(site.servers[0].conninfo(), autocommit=True) as root:
            root.execute(f"CREATE ROLE {ADMIN} LOGIN NOSUPERUSER CREATEROLE CREATEDB")
        # Providers let their administrator create pgvector; this package asks for a superuser.
        with psycopg.connect(site.servers[0].conninfo(database="template1"), autocommit=True) as root:
            root.execute("CREATE EXTENSION vector")
        yield site
    finally:
        site.stop()
        shutil.rmtree(site.folder)


def test_roles_are_made_again_and_the_product_is_migrated_without_a_superuser(managed: Site) -> None:
    with psycopg.connect(managed.servers[0].conninfo(user=ADMIN), autocommit=True) as interrupted:
        interrupted.execute("CREATE ROLE memos_owner LOGIN")
    for _ in range(2):
        made = managed.make_roles(ADMIN)
        assert made.returncode == 0, made.stderr
    assert "NOTICE:  only a superuser makes memos_backup" in made.stderr
    migrated = managed.manage("migrate", "--noinput", "--verbosity", "0", environ=managed.owner_environ())
    assert migrated.returncode == 0, migrated.stderr
    checked = managed.manage("check", "--database", "default", "--deploy")
    assert checked.returncode == 0, checked.stderr
