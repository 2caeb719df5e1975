"""Operations that would change what is held, by every path there is. Each is tried; what is refused is counted."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import psycopg
from django.db import Error as DjangoDatabaseError

from governance.actor import Actor
from governance.database import acting
from governance.errors import DomainError
from governance.tenants.services import command_line_actor
from tests.factories import ApiClient, ApiReply, World
from tests.governance.filled_tenants import drain
from tests.governance.tables import become
from tests.vault.holds.held import Holding
from vault.content.drafts import CubeChanges, CubeDraft
from vault.cubes.services import cube_delete, cube_purge, cube_restore, cube_update, cubes_add, cubes_hide
from vault.models import Cube, CubeVersion

# Columns that an app which served somebody's wish would write, with another value than they have.
CUBE_SETS = (
    "importance = 0.123",
    "tags = '{other}'",
    "deleted_at = now()",
    "deleted_at = NULL",
    "expires_at = now()",
    "expires_at = now() + interval '1 day'",
    "state = 'expired'",
    "superseded_by = gen_random_uuid()",
    "version = version + 1",
    "subject_id = NULL",
    "owner_id = NULL",
    "content_hash = '\\x00'",
    "id = gen_random_uuid()",
    "updated_at = now()",
    "importance = importance",
)
# {cube}, {subject}, {hold}, {olivia}, {alice}: ids. Many are whole statements of someone who knows how holds work.
RAW = (
    "DELETE FROM vault_cube WHERE id = '{cube}'",
    "DELETE FROM vault_cube",
    "UPDATE vault_cube SET deleted_at = now()",
    "TRUNCATE vault_cube CASCADE",
    "UPDATE vault_cubeversion SET sealed = '', terms = '{{}}' WHERE cube_id = '{cube}'",
    "DELETE FROM vault_cubeversion WHERE cube_id = '{cube}'",
    "DELETE FROM vault_cubeversion",
    "TRUNCATE vault_cubeversion",
    "MERGE INTO vault_cube AS c USING (SELECT '{cube}'::uuid AS id) AS s ON c.id = s.id WHEN MATCHED THEN DELETE",
    "INSERT INTO vault_cube SELECT * FROM vault_cube WHERE id = '{cube}' ON CONFLICT (id) DO UPDATE SET importance = 0",
    "INSERT INTO vault_cubeversion SELECT (jsonb_populate_record(v, jsonb_build_object('id', gen_random_uuid(), "
    "'number', 99))).* FROM vault_cubeversion AS v WHERE cube_id = '{cube}' AND number = 1",
    "UPDATE governance_datasubject SET sealed_reference = ''",
    "DELETE FROM governance_datasubject WHERE id = '{subject}'",
    # what holds
    "UPDATE vault_hold SET kind = 'freeze'",
    "DELETE FROM vault_hold",
    "TRUNCATE vault_hold CASCADE",
    "UPDATE vault_holdcube SET cube_id = gen_random_uuid()",
    "DELETE FROM vault_holdcube WHERE cube_id = '{cube}'",
    "TRUNCATE vault_holdcube",
    "UPDATE vault_holdreleaseapproval SET member_id = '{alice}'",
    "DELETE FROM vault_holdreleaseapproval",
    # approvals: of nobody, of another, of the same member again, of two at once
    "INSERT INTO vault_holdreleaseapproval (id, tenant_id, hold_id, member_id, transaction) "
    "VALUES (gen_random_uuid(), '{tenant}', '{hold}', gen_random_uuid(), 1)",
    "INSERT INTO vault_holdreleaseapproval (id, tenant_id, hold_id, member_id, transaction) "
    "VALUES (gen_random_uuid(), '{tenant}', '{hold}', '{alice}', 2)",
    "SELECT set_config('app.user', '{olivia_user}', true); "
    "INSERT INTO vault_holdreleaseapproval (id, tenant_id, hold_id, member_id, transaction) "
    "VALUES (gen_random_uuid(), '{tenant}', '{hold}', '{olivia}', {number})",
    "SELECT set_config('app.user', '{bob_user}', true); "
    "INSERT INTO vault_holdreleaseapproval (id, tenant_id, hold_id, member_id, transaction) "
    "VALUES (gen_random_uuid(), '{tenant}', '{hold}', '{bob}', 3); "
    "SELECT set_config('app.user', '{alice_user}', true); "
    "INSERT INTO vault_holdreleaseapproval (id, tenant_id, hold_id, member_id, transaction) "
    "VALUES (gen_random_uuid(), '{tenant}', '{hold}', '{alice}', 4)",
    # around the triggers
    "ALTER TABLE vault_cube DISABLE TRIGGER ALL",
    "DROP TRIGGER cube_stays_while_held ON vault_cube",
    "SET LOCAL session_replication_role = replica; DELETE FROM vault_cube WHERE id = '{cube}'",
    "CREATE TEMP TABLE vault_holdcube (tenant_id uuid, cube_id uuid, hold_id uuid); "
    "DELETE FROM vault_cube WHERE id = '{cube}'",
    "SET LOCAL search_path = pg_temp; DELETE FROM public.vault_cube WHERE id = '{cube}'",
    "SET LOCAL row_security = off; DELETE FROM vault_cube WHERE id = '{cube}'",
    "CREATE OR REPLACE FUNCTION vault_hold_stands(of_tenant uuid, of_hold uuid) RETURNS boolean LANGUAGE sql "
    "AS 'SELECT false'",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; DELETE FROM vault_cube WHERE id = '{cube}'",
    "DELETE FROM vault_namespace",
    "SELECT governance_tidy(interval '0', interval '0'), governance_jobs_tidy()",
)
Attack = Callable[[UUID], object]


@dataclass
class Attacker:
    """Holds all that one process of the product has: the services, the API's keys, and the app role."""

    world: World
    holding: Holding
    app: psycopg.Connection
    dice: random.Random
    tried: int = 0
    refused: int = 0

    def attack(self, times: int) -> None:
        paths = (self._by_api, self._by_service, self._by_queryset, self._by_update, self._by_statement)
        for _ in range(times):
            path = self.dice.choices(paths, weights=(2, 2, 2, 3, 6))[0]
            self._try(path, self.dice.choice(self.holding.held))
        drain()  # what the operations left for the worker

    def each_statement(self) -> None:
        """Every statement of the lists above once, on a memory of each kind; twice, for what the first round opened."""
        for cube_id in self.holding.held * 2:
            for change in CUBE_SETS:
                self._try(partial(self._change, change), cube_id)
            for statement in RAW:
                self._try(partial(self._state, statement), cube_id)

    def _try(self, attack: Attack, cube_id: UUID) -> None:
        self.tried += 1
        try:
            attack(cube_id)
        except (DomainError, DjangoDatabaseError, psycopg.Error):
            self.refused += 1

    def _by_api(self, cube_id: UUID) -> None:
        who = self.dice.choice(["olivia", "alice", "bob"])
        client, address = self.world.client(who), f"memories/{cube_id}/"
        calls: Sequence[Callable[[ApiClient], ApiReply]] = (
            lambda client: client.patch(address, {"importance": self.dice.random()}, if_match='"2"'),
            lambda client: client.patch(address, {"content": "Other.", "tags": [], "subject": None}, if_match='"2"'),
            lambda client: client.patch(address, {"expires_at": "2100-01-01T00:00:00Z"}, if_match='"2"'),
            lambda client: client.patch(address, {"namespace": "/elsewhere"}, if_match='"2"'),
            lambda client: client.delete(address),
            lambda client: client.delete(address + "?purge=true"),
            lambda client: client.post(address + "restore/"),
            lambda client: client.post("memories/", {"content": "The frozen one.", "namespace": "/team"}),
            lambda client: client.post("memories/bulk/", {"items": [{"content": "New.", "subject": "carla"}] * 3}),
            lambda row: self.world.client("bob").post(address + "unfreeze/"),
            lambda row: self.world.client("olivia").post(f"holds/{self.dice.choice(self.holding.legal)}/release/"),
        )
        reply = self.dice.choice(calls)(client)
        assert reply.status < 500, reply  # whatever refuses, the caller reads why
        self.refused += reply.status >= 400

    def _by_service(self, cube_id: UUID) -> None:
        system = command_line_actor(self.world.acme.id)
        actor: Actor = self.dice.choice([system, self.world.olivia.actor, self.world.alice.actor])
        changes = CubeChanges(importance=self.dice.random(), tags=("other",))
        calls: Sequence[Callable[[], object]] = (
            lambda: cube_update(actor=actor, cube_id=cube_id, expected_versions=[2], changes=changes),
            lambda: cube_delete(actor=actor, cube_id=cube_id),
            lambda: cube_purge(actor=actor, cube_id=cube_id),
            lambda: cube_restore(actor=actor, cube_id=cube_id),
            lambda: cubes_hide(actor=actor, cubes=self._rows(actor, cube_id)),
            lambda: cubes_add(actor=actor, drafts=[CubeDraft(content="The frozen one.", namespace="/team")]),
        )
        self.dice.choice(calls)()

    def _by_queryset(self, cube_id: UUID) -> None:
        """Try every change that code could make with the models."""
        with acting(self.world.olivia.actor):
            cube = Cube.objects.get(id=cube_id)
            cube.importance, cube.tags = self.dice.random(), ["other"]
            versions = CubeVersion.objects.filter(cube_id=cube_id)
            calls: Sequence[Callable[[], object]] = (
                lambda: Cube.objects.update(importance=0.2),
                lambda: Cube.objects.filter(id=cube_id).update(expires_at=cube.created_at),
                lambda: Cube.objects.bulk_update([cube], ["importance", "tags"]),
                cube.save,
                cube.delete,
                lambda: Cube.objects.all()._raw_delete(using="default"),
                lambda: versions.update(sealed=b"", terms=[]),
                lambda: versions._raw_delete(using="default"),
            )
            self.dice.choice(calls)()

    def _by_update(self, cube_id: UUID) -> None:
        self._change(self.dice.choice(CUBE_SETS), cube_id)

    def _by_statement(self, cube_id: UUID) -> None:
        self._state(self.dice.choice(RAW), cube_id)

    def _change(self, change: str, cube_id: UUID) -> None:
        self._run(f"UPDATE vault_cube SET {change} WHERE id = '{cube_id}'")

    def _state(self, statement: str, cube_id: UUID) -> None:
        self._run(self._fill_statement(statement, cube_id))

    def _fill_statement(self, statement: str, cube_id: UUID) -> str:
        world = self.world
        return statement.format(
            cube=cube_id,
            subject=self.holding.subject,
            tenant=world.acme.id,
            hold=self.dice.choice(self.holding.legal),
            olivia=world.olivia.member.id,
            alice=world.alice.member.id,
            bob=world.bob.member.id,
            bob_user=world.bob.member.user_id,
            olivia_user=world.olivia.member.user_id,
            alice_user=world.alice.member.user_id,
            number=self.dice.randrange(10**6),
        )

    def _rows(self, actor: Actor, cube_id: UUID) -> list[Cube]:
        with acting(actor):
            return list(Cube.objects.filter(id__in=[cube_id, self.holding.free]))

    def _run(self, statements: str) -> None:
        """As the app role, in one transaction of the tenant, committed."""
        with self.app.transaction():
            become(self.app, self.world.acme.id)
            for statement in statements.split("; "):
                self.app.execute(statement.encode())
