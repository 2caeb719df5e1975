"""The Django admin: for operators alone, in the one tenant of their session, without content, each view audited."""

from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from governance.accounts.operators import operator_set
from governance.jobs.schedules import ScheduleDraft, schedule_create
from tests.factories import Person, World
from tests.governance.filled_tenants import Filled, fill
from tests.governance.web.visitors import link_for, signed_in
from tests.harness.cases import each_case

Superuser = Callable[[], psycopg.Connection]
LISTS = (
    "governance/tenant",
    "governance/member",
    "governance/job",
    "governance/schedule",
    "governance/personagrant",
    "vault/cubegrant",
    "vault/namespacegrant",
)


def operator(person: Person) -> Client:
    """A browser of `person`, who operates the installation."""
    operator_set(user_id=person.member.user_id, is_operator=True)
    return signed_in(person)


def rows_of(superuser: Superuser, table: str, tenant: UUID) -> list[UUID]:
    rows = superuser().execute(f"SELECT id FROM {table} WHERE tenant_id = %s", [tenant]).fetchall()
    return [row[0] for row in rows]


def addresses() -> list[str]:
    """Every address below /admin/, with an id where one may stand."""
    (root,) = [pattern for pattern in get_resolver().url_patterns if str(pattern.pattern) == "admin/"]
    assert isinstance(root, URLResolver)

    def below(resolver: URLResolver, prefix: str) -> list[str]:
        found: list[str] = []
        for pattern in resolver.url_patterns:
            address = prefix + str(pattern.pattern)
            found += [address] if isinstance(pattern, URLPattern) else below(pattern, address)
        return found

    return below(root, "/admin/")


@pytest.fixture
def both(world: World) -> tuple[Filled, Filled]:
    """acme with the canary nightingale, other with the canary turnstone."""
    return fill(world.olivia, "nightingale"), fill(world.charlie, "turnstone")


@each_case("who", ["alice", "bob", "olivia", "charlie"])
def test_who_is_no_operator_finds_no_admin(world: World, who: str) -> None:
    client = signed_in(world.person(who))
    for address in ["/admin/", *(f"/admin/{table}/" for table in LISTS)]:
        assert client.get(address).status_code == client.post(address).status_code == 404


def test_nobody_signed_in_is_led_to_sign_in(world: World) -> None:
    assert Client().get("/admin/governance/job/")["Location"].startswith("/sign-in/?next=")


def test_a_session_that_a_tenant_began_opens_no_admin(world: World) -> None:
    operator_set(user_id=world.bob.member.user_id, is_operator=True)
    client = Client()
    client.post(link_for(world.bob, by=world.olivia.actor))
    assert client.get("/overview/").status_code == 200
    assert client.get("/admin/").status_code == 404


def test_an_operator_sees_rows_of_no_other_tenant(
    world: World, both: tuple[Filled, Filled], superuser: Superuser
) -> None:
    client = operator(world.bob)
    for path in LISTS:
        page = client.get(f"/admin/{path}/").content.decode()
        table = path.replace("/", "_")
        if table == "governance_tenant":
            mine, others = [world.acme.id], [world.other.id]
        else:
            mine, others = (rows_of(superuser, table, tenant.id) for tenant in (world.acme, world.other))
        assert mine, table
        assert others, table
        assert any(f"/admin/{path}/{row}/change/" in page for row in mine), table
        assert not any(str(row) in page for row in others), table
        assert client.get(f"/admin/{path}/{mine[0]}/change/").status_code == 200
        for method in (client.get, client.post):
            assert method(f"/admin/{path}/{others[0]}/change/").status_code == 404


def test_content_and_sealed_columns_stand_on_no_page(
    world: World, both: tuple[Filled, Filled], superuser: Superuser
) -> None:
    client = operator(world.olivia)
    for path in LISTS:
        table = path.replace("/", "_")
        ids = [world.acme.id] if table == "governance_tenant" else rows_of(superuser, table, world.acme.id)
        for address in [f"/admin/{path}/", *(f"/admin/{path}/{row}/change/" for row in ids[:20])]:
            page = client.get(address)
            assert page.status_code == 200
            assert "nightingale" not in page.content.decode(), address
            assert "sealed" not in page.content.decode(), address


@each_case(
    "asked",
    [
        "sealed_request__startswith=a",
        "context__purpose=x",
        "settings__contains=a",
        "member__user__password__startswith=s",
    ],
)
def test_a_column_that_is_not_shown_cannot_be_asked_for(world: World, asked: str) -> None:
    assert operator(world.bob).get(f"/admin/governance/job/?{asked}").status_code == 422


def test_nothing_is_added_changed_or_deleted_but_schedules(
    world: World, both: tuple[Filled, Filled], superuser: Superuser
) -> None:
    client = operator(world.olivia)
    assert not [
        address for address in addresses() if any(word in address for word in ("add", "delete", "history", "login"))
    ]
    for path in set(LISTS) - {"governance/schedule", "governance/tenant"}:
        row = rows_of(superuser, path.replace("/", "_"), world.acme.id)[0]
        assert client.post(f"/admin/{path}/{row}/change/", {"display_name": "X", "effect": "deny"}).status_code == 403
        assert client.post(
            f"/admin/{path}/", {"action": "delete_selected", "_selected_action": str(row)}
        ).status_code in {
            200,
            403,
        }
        assert row in rows_of(superuser, path.replace("/", "_"), world.acme.id)


def test_each_view_is_in_the_audit_log_with_what_was_shown(world: World, superuser: Superuser) -> None:
    client = operator(world.bob)
    for address in ("", "governance/", "governance/member/", f"governance/member/{world.alice.member.id}/change/"):
        assert client.get(f"/admin/{address}").status_code == 200
    entries = (
        superuser()
        .execute(
            "SELECT principal_id, object_type, object_ids FROM governance_auditentry WHERE verb = 'operator.viewed'"
            " ORDER BY id"
        )
        .fetchall()
    )
    assert [entry[1] for entry in entries] == ["tenant", "tenant", "member", "member"]
    assert {entry[0] for entry in entries} == {world.bob.member.id}
    assert set(entries[2][2]) == {person.member.id for person in (world.olivia, world.alice, world.bob, world.ada)}
    assert entries[3][2] == [world.alice.member.id]
    log = signed_in(world.ada).get("/audit/").content.decode()
    assert "as an operator" in log


def test_a_schedule_is_changed_by_who_may_and_by_nobody_else(world: World, superuser: Superuser) -> None:
    draft = ScheduleDraft(kind="audit.export", cron="0 3 * * 1", settings={"format": "csv"})
    schedule = schedule_create(actor=world.olivia.actor, draft=draft)
    address = f"/admin/governance/schedule/{schedule.id}/change/"
    changed = {"cron": "0 4 * * *", "timezone": "Europe/Berlin", "enabled": "on"}

    def cron() -> str:
        row = superuser().execute("SELECT cron FROM governance_schedule WHERE id = %s", [schedule.id]).fetchone()
        assert row is not None
        return str(row[0])

    assert operator(world.bob).post(address, changed).status_code == 403
    assert operator(world.charlie).post(address, changed).status_code == 404
    client = operator(world.olivia)
    refused = client.post(address, changed | {"cron": "daily", "timezone": "Mars/Base"})
    assert refused.status_code == 200
    assert "daily" in refused.content.decode()
    assert cron() == "0 3 * * 1"
    assert client.post(address, changed)["Location"] == "/admin/governance/schedule/"
    assert cron() == "0 4 * * *"
    verbs = superuser().execute("SELECT count(*) FROM governance_auditentry WHERE verb = 'schedule.changed'").fetchone()
    assert verbs == (1,)


def test_only_operators_find_the_way_in_the_menu(world: World) -> None:
    assert 'href="/admin/"' in operator(world.bob).get("/you/").content.decode()
    assert 'href="/admin/"' not in signed_in(world.olivia).get("/you/").content.decode()
