"""Founding a tenant."""

import psycopg
import pytest

from governance.errors import Conflict, Invalid
from governance.tenants.services import tenant_create
from tests.harness.databases import Clone


def test_it_makes_the_tenant_its_roles_and_its_owner(database: Clone, app_connection: psycopg.Connection) -> None:
    tenant, owner = tenant_create(slug="acme", name="Acme", owner_email="alice@example.org")
    with app_connection.transaction():
        app_connection.execute("SELECT set_config('app.tenant', %s, true)", [str(tenant.id)])
        assert app_connection.execute("SELECT count(*) FROM governance_role").fetchone() == (5,)
        assert app_connection.execute("SELECT id FROM governance_member").fetchone() == (owner.id,)


def test_it_refuses_a_slug_that_is_taken(database: Clone) -> None:
    tenant_create(slug="acme", name="Acme", owner_email="alice@example.org")
    with pytest.raises(Conflict):
        tenant_create(slug="acme", name="Another", owner_email="bob@example.org")


@pytest.mark.parametrize(("slug", "email"), [("a b", "alice@example.org"), ("acme", "nobody")])
def test_it_refuses_what_is_no_slug_or_no_address(database: Clone, slug: str, email: str) -> None:
    with pytest.raises(Invalid):
        tenant_create(slug=slug, name="", owner_email=email)
