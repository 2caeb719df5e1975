"""The audit log: a row in the transaction of what it tells of, that nobody changes, and that holds no content."""

from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest
from django.db import connection
from django.db.models import Q
from psycopg import sql

from governance.audit.services import record, record_denial
from governance.database import acting
from governance.errors import AuditUnavailable, Forbidden
from governance.models import AuditEntry
from governance.pages import First
from governance.privacy.services import subject_ensure
from governance.tenants.services import (
    apikey_create,
    member_add,
    sign_in_link_create,
    sign_in_link_use,
)
from governance.vocabulary import Outcome, RoleName, Scope, Verb
from tests.factories import World
from tests.governance.audit.logs import seal_all
from tests.governance.filled_tenants import drain, fill
from tests.governance.tables import become, read_all_rows
from vault.chat.services import (
    ConversationChanges,
    ConversationDraft,
    conversation_create,
    conversation_delete,
    conversation_update,
    turn_run,
)
from vault.content.drafts import CubeChanges, CubeDraft
from vault.cubes.selectors import cube_get, cubes_list, versions_list
from vault.cubes.services import cube_delete, cube_purge, cube_restore, cube_update, cubes_add
from vault.jobs.memory_additions import drafts_screen, memories_add_later
from vault.models import Cube
from vault.namespaces.services import namespace_for_writing
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search

Superuser = Callable[[], psycopg.Connection]
CHANGES = (
    "UPDATE governance_auditentry SET verb = 'nothing'",
    "DELETE FROM governance_auditentry",
    "TRUNCATE governance_auditentry, governance_auditseal",
    "UPDATE governance_auditseal SET seq = seq + 1",
    "DELETE FROM governance_auditseal",
    "TRUNCATE governance_auditseal",
    "UPDATE governance_auditcheckpoint SET text = ''",
    "DELETE FROM governance_auditcheckpoint",
    "TRUNCATE governance_auditcheckpoint",
)


def _token(world: World) -> str:
    return sign_in_link_create(actor=world.olivia.actor, member=world.alice.member).url.rsplit("/", 2)[1]


def _cases(world: World) -> dict[Verb, Callable[[], object]]:
    """A call of each service that the audit log tells of, on rows that were made before."""
    actor = world.olivia.actor
    cube = cubes_add(actor=actor, drafts=[CubeDraft(content="known")])[0].cube
    gone = cubes_add(actor=actor, drafts=[CubeDraft(content="gone")])[0].cube
    cube_delete(actor=actor, cube_id=gone.id)
    talk = conversation_create(actor=actor, draft=ConversationDraft()).id
    token = _token(world)
    changes = CubeChanges(importance=0.9)
    return {
        Verb.MEMBER_ADDED: lambda: member_add(actor=actor, email="new@acme.example", role=RoleName.VIEWER),
        Verb.APIKEY_CREATED: lambda: apikey_create(actor=actor, member=world.bob.member, scopes=[Scope.CHAT]),
        Verb.SIGN_IN_LINK_CREATED: lambda: sign_in_link_create(actor=actor, member=world.bob.member),
        Verb.SIGN_IN_LINK_USED: lambda: sign_in_link_use(token=token, request_id="r", address="127.0.0.1"),
        Verb.SUBJECT_CREATED: lambda: subject_ensure(actor=actor, reference="somebody"),
        Verb.NAMESPACE_CREATED: lambda: namespace_for_writing(actor=actor, path="/new"),
        Verb.MEMORY_CREATED: lambda: cubes_add(actor=actor, drafts=[CubeDraft(content="new")]),
        Verb.MEMORY_READ: lambda: cube_get(actor=actor, cube_id=cube.id),
        Verb.MEMORY_LISTED: lambda: cubes_list(actor=actor, matching=Q(), pages=First(1000)),
        Verb.MEMORY_SEARCHED: lambda: memories_search(actor=actor, search=SearchQuery(query="known")),
        Verb.VERSIONS_READ: lambda: versions_list(actor=actor, cube_id=cube.id, pages=First(1000)),
        Verb.MEMORY_UPDATED: lambda: cube_update(actor=actor, cube_id=cube.id, expected_versions={1}, changes=changes),
        Verb.MEMORY_RESTORED: lambda: cube_restore(actor=actor, cube_id=gone.id),
        Verb.MEMORY_DELETED: lambda: cube_delete(actor=actor, cube_id=cube.id),
        Verb.MEMORY_PURGED: lambda: cube_purge(actor=actor, cube_id=gone.id),
        Verb.CONVERSATION_CREATED: lambda: conversation_create(actor=actor, draft=ConversationDraft()),
        Verb.TURN_CREATED: lambda: turn_run(actor=actor, conversation_id=talk, content="What is known?"),
        Verb.CONVERSATION_UPDATED: lambda: conversation_update(
            actor=actor, conversation_id=talk, changes=ConversationChanges(title="t")
        ),
        Verb.CONVERSATION_DELETED: lambda: conversation_delete(actor=actor, conversation_id=talk),
        Verb.JOB_CREATED: lambda: memories_add_later(
            actor=actor, screened=drafts_screen(actor=actor, drafts=[CubeDraft(content="later")])
        ),
    }


def test_every_service_leaves_its_row_and_names_the_object(world: World) -> None:
    for verb, call in _cases(world).items():
        before = _count(world, verb)
        call()
        assert _count(world, verb) == before + 1, verb


def test_what_is_rolled_back_leaves_no_row_of_any_kind(world: World, superuser: Superuser) -> None:
    cases = _cases(world)
    before = read_all_rows(superuser())
    for verb, call in cases.items():
        with suppress(LookupError), acting(world.olivia.actor):
            call()
            raise LookupError(verb)
        assert read_all_rows(superuser()) == before, verb


def test_a_row_says_who_did_what_to_which_object_in_what_context(world: World) -> None:
    cube = cubes_add(actor=world.alice.key_actor(), drafts=[CubeDraft(content="a word")])[0].cube
    with acting(world.olivia.actor):
        row = AuditEntry.objects.get(verb=Verb.MEMORY_CREATED)
    assert (row.principal_kind, row.principal_id, row.member_id) == (
        "api_key",
        world.alice.key.id,
        world.alice.member.id,
    )
    assert (row.object_type, row.object_ids, row.version, row.outcome) == ("memory", [cube.id], 1, Outcome.DONE)
    assert row.context == {"channel": "api"}
    assert row.request_id == world.alice.key_actor().request_id


def test_a_list_is_one_row_that_names_every_memory(world: World) -> None:
    made = cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content=str(number)) for number in range(5)])
    cubes_list(actor=world.alice.actor, matching=Q(), pages=First(1000))
    with acting(world.olivia.actor):
        row = AuditEntry.objects.get(verb=Verb.MEMORY_LISTED)
    assert set(row.object_ids) == {memory.cube.id for memory in made}


def test_the_audit_log_holds_no_content(world: World, superuser: Superuser) -> None:
    fill(world.olivia, "nightingale")
    drain()
    found = superuser().execute("SELECT t::text FROM governance_auditentry AS t WHERE t::text LIKE '%nightingale%'")
    assert found.fetchall() == []


def test_nobody_changes_the_audit_log(world: World, superuser: Superuser) -> None:
    seal_all(world.acme.id)
    before = read_all_rows(superuser())
    for role in ("memos_app", "memos_owner", "postgres"):
        for statement in CHANGES:
            with superuser() as connection, connection.transaction(force_rollback=True):
                connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
                become(connection, world.acme.id)
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())
    assert read_all_rows(superuser()) == before


def test_what_cannot_be_recorded_does_not_happen(world: World, superuser: Superuser) -> None:
    superuser().execute("REVOKE INSERT ON governance_auditentry FROM memos_app")
    with pytest.raises(AuditUnavailable):
        cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content="unrecorded")])
    with acting(world.olivia.actor):
        assert Cube.objects.count() == 0


def test_a_record_that_fails_takes_the_whole_transaction_with_it(world: World, superuser: Superuser) -> None:
    superuser().execute("REVOKE INSERT ON governance_auditentry FROM memos_app")
    before = read_all_rows(superuser())
    with suppress(AuditUnavailable), acting(world.alice.actor):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE governance_persona SET name = 'changed'")
        record(actor=world.alice.actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=[])
    assert read_all_rows(superuser()) == before


def test_a_denial_is_recorded_with_its_permission_and_rule(world: World) -> None:
    denial = Forbidden("no", permission="memory.read", rule="private", object_type="memory", object_id=world.acme.id)
    record_denial(actor=world.bob.actor, denial=denial, path="/api/v1/memories/")
    with acting(world.olivia.actor):
        row = AuditEntry.objects.get(outcome=Outcome.DENIED)
    assert (row.verb, row.object_type, row.object_ids) == (Verb.ACCESS_DENIED, "memory", [world.acme.id])
    assert row.detail == {"permission": "memory.read", "rule": "private", "path": "/api/v1/memories/"}


def _count(world: World, verb: Verb) -> int:
    with acting(world.olivia.actor):
        return AuditEntry.objects.filter(verb=verb).count()
