"""Journeys across tenants: rows of others that a query shows, code that turns to others, and who writes there."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from governance.actor import SYSTEM_PRINCIPAL, Actor
from governance.vocabulary import PrincipalKind
from tests.architecture.catalogue import tenant_tables
from tests.factories import World
from tests.governance.tables import rows_of
from tests.harness.servers import ROOT
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, pack_of, publish_version, subscribe

Superuser = Callable[[], psycopg.Connection]
QUEUES = frozenset({"governance_outboxevent", "governance_auditunsealed"})

# Each function that turns to another tenant than its actor's. Reads: of a publisher that offers, or has a contract.
READS = {
    "vault/store/catalogue.py": {"offer_get"},
    "vault/store/comparison.py": {"_edition_made_at"},
    "vault/store/installed_packs.py": {"offered_versions_list"},
    "vault/store/moderation.py": {"_report_view"},  # of the operator of the installation
    "vault/store/ratings.py": {"ratings_list"},
    "vault/store/trials.py": {"_open_index"},
    "vault/store/upgrades.py": {"_read_published"},
}
# Writes: handlers of the outbox and steps of jobs, with what they call.
WRITES = {
    "vault/embeddings/vectors.py": {"announce_changes"},  # an event of the same tenant
    "vault/store/contract_messages.py": {"subscribers_inform", "reads_report"},
    "vault/store/installation.py": {"_publisher_actor"},
    "vault/store/moderation.py": {"report_decide"},  # of the operator of the installation
    "vault/store/proposals.py": {"proposals_deliver", "answers_deliver"},
    "vault/store/ratings.py": {"ratings_report"},
    "vault/store/trials.py": {"_request_index"},  # an event, for the publisher's own worker
}
SWEEPS = {  # of all tenants, one after the other, each as itself
    "vault/cubes/storage.py": {"_find_first_purge"},
    "vault/jobs/sessions.py": {"sessions_end_idle"},
    "vault/layers/session_ends.py": {"streams_end_idle"},
    "vault/overview/counts.py": {"counts_ask"},
    "vault/overview/digests.py": {"digests_ask"},
}
DEMO = {"vault/demo/packs.py"}


def turns(path: Path) -> Iterator[str]:
    """The functions of a module that open a transaction of, or act for, a tenant that is not their actor's."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and _is_foreign(call):
                    yield function.name


def _is_foreign(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id == "tenant_transaction":
        return True
    if not isinstance(call.func, ast.Name) or call.func.id != "system_actor":
        return False
    (tenant,) = [keyword.value for keyword in call.keywords if keyword.arg == "tenant_id"]
    return ast.unparse(tenant) != "actor.tenant_id"


def test_code_that_turns_to_another_tenant_is_listed() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in sorted((ROOT / "vault").rglob("*.py"))
        if (names := set(turns(path)))
    }
    listed: dict[str, set[str]] = {}
    for group in (READS, WRITES, SWEEPS):
        for place, functions in group.items():
            listed[place] = listed.get(place, set()) | functions
    assert {place: names for place, names in found.items() if place not in DEMO} == listed


def test_a_single_policy_shows_rows_of_other_tenants(superuser: Superuser) -> None:
    """Every other policy for the application compares the tenant of the row with that of the transaction, and no more.

    The functions that run with more rights are listed in tests/architecture/catalogue.py; three of them read packs:
    `vault_pack_reports`, for the operator, returns ids; `vault_contract_is_revoked` and `vault_contract_bars` tell a
    subscriber of its own contracts.
    """
    rows = superuser().execute(
        "SELECT tablename, policyname, cmd, qual FROM pg_policies WHERE schemaname = 'public' "
        "AND tablename LIKE 'vault_%' AND NOT ('memos_router' = ANY(roles)) AND qual IS NOT NULL"
    )
    wider = [(table, command) for table, _, command, qual in rows if not _is_own(qual)]
    assert wider == [("vault_listing", "SELECT")]


def _is_own(condition: str) -> bool:
    return " ".join(condition.split()).strip("() ").startswith("tenant_id = ") and " OR " not in condition


@dataclass
class Journey:
    """A pack of charlie that olivia has installed. Sides: acme subscribes, other publishes."""

    world: World
    olivia: Contract
    charlie: Contract
    pack: str
    memories: list[str]
    publication: str
    subscription: str

    def contract(self) -> str:
        (found,) = self.charlie.get("contracts/").json["results"]
        return str(found["id"])

    def memory(self) -> str:
        return str(self.olivia.get("memories/?namespace=/packs/other/herons").json["results"][0]["id"])


@pytest.fixture
def journey(world: World, olivia: Contract, charlie: Contract) -> Journey:
    pack, memories = pack_of(charlie), memories_of(charlie, *TEXTS)
    made = publish_version(charlie, build_version(charlie, pack, memories))
    subscription = subscribe(olivia, made["id"])["id"]
    return Journey(world, olivia, charlie, pack, memories, made["id"], subscription)


def uninstall(journey: Journey) -> None:
    assert journey.olivia.delete(f"subscriptions/{journey.subscription}/").status in {202, 204}


def read(journey: Journey) -> None:
    assert journey.olivia.get(f"memories/{journey.memory()}/").status == 200


def rate(journey: Journey) -> None:
    assert (
        journey.olivia.post(f"publications/{journey.publication}/ratings/", {"stars": 4, "text": "Good."}).status == 201
    )


def propose(journey: Journey) -> None:
    body = {"memory": journey.memory(), "content": "The heron nests above the weir.", "reason": "It moved."}
    assert journey.olivia.post(f"subscriptions/{journey.subscription}/proposals/", body).status == 201


def decline(journey: Journey) -> None:
    (found,) = journey.charlie.get("proposals/").json["results"]
    assert journey.charlie.post(f"proposals/{found['id']}/decline/", {"reason": "No."}).status == 200


def revoke(journey: Journey) -> None:
    assert journey.charlie.post(f"contracts/{journey.contract()}/revoke/", {"reason": "Unpaid."}).status == 200


def yank(journey: Journey) -> None:
    assert journey.charlie.post(f"packs/{journey.pack}/versions/1.0.0/yank/", {"reason": "Wrong."}).status == 200


def publish(journey: Journey) -> None:
    publish_version(journey.charlie, build_version(journey.charlie, journey.pack, journey.memories[:2], "1.1.0"))


@pytest.mark.parametrize(
    ("before", "act", "receiver"),
    [
        (None, uninstall, "charlie"),
        (None, read, "charlie"),
        (None, rate, "charlie"),
        (None, propose, "charlie"),
        (propose, decline, "olivia"),
        (None, revoke, "olivia"),
        (None, yank, "olivia"),
        (None, publish, "olivia"),
    ],
)
def test_what_one_tenant_does_reaches_the_other_by_the_outbox_as_its_own_system(
    before: Callable[[Journey], None] | None,
    act: Callable[[Journey], None],
    receiver: str,
    journey: Journey,
    superuser: Superuser,
) -> None:
    if before is not None:
        before(journey)
    run_jobs()
    there, database = journey.world.person(receiver).actor, superuser()
    former, last = snapshot(database, there), last_entry(database, there)
    act(journey)
    assert changed_tables(former, snapshot(database, there)) == set(), "a row was written without the outbox"
    run_jobs()
    reached = changed_tables(former, snapshot(database, there)) - QUEUES
    assert any(table.startswith("vault_") for table in reached)
    # Reads that a publisher is sent are numbers in a table of their own, and have no audit entry there.
    assert writers(database, there, last) == (set() if act is read else {(PrincipalKind.SYSTEM, SYSTEM_PRINCIPAL)})


def last_entry(database: psycopg.Connection, actor: Actor) -> UUID:
    row = database.execute("SELECT max(id::text) FROM governance_auditentry WHERE tenant_id = %s", [actor.tenant_id])
    (found,) = row.fetchone() or (None,)
    return UUID(found)


def writers(database: psycopg.Connection, actor: Actor, after: UUID) -> set[tuple[str, UUID]]:
    """Actors that the audit log of a tenant names for the entries behind one."""
    rows = database.execute(
        "SELECT principal_kind, principal_id FROM governance_auditentry WHERE tenant_id = %s AND id > %s",
        [actor.tenant_id, after],
    )
    return set(rows)


def snapshot(database: psycopg.Connection, actor: Actor) -> dict[str, Counter[str]]:
    return {table: Counter(rows_of(database, actor, table)) for table in tenant_tables(database)}


def changed_tables(former: dict[str, Counter[str]], after: dict[str, Counter[str]]) -> set[str]:
    return {table for table, rows in after.items() if rows != former[table]}
