"""The auditor's pages: each shows what it should, to those who may; forms that cannot be used are 422."""

import re
from collections.abc import Callable
from typing import cast

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.http import StreamingHttpResponse
from django.test import Client

from governance.audit.reading.exports import exports_list
from governance.audit.signing import checkpoints_outside
from governance.database import acting
from governance.models import AuditEntry, AuditSink
from governance.pages import First
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.audit.logs import log_make
from tests.governance.filling import drain
from tests.governance.tables import everything
from tests.governance.web.visitors import signed_in

Superuser = Callable[[], psycopg.Connection]
PAGES = (
    "/audit/",
    "/audit/verify/",
    "/audit/checkpoints/",
    "/audit/exports/",
    "/audit/permission-changes/",
    "/audit/unusual-reads/",
)
FILES = ("/audit/public-key/", "/audit/verifier/", "/audit/permission-changes/csv/")
SINK = {"name": "log", "kind": "syslog", "address": "syslog+tls://log.example"}


@pytest.fixture
def ada(world: World) -> Client:
    """The auditor, with a trail of 60 entries."""
    log_make(world.alice.actor, 60)
    return signed_in(world.ada)


def words(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, (address, response.status_code)
    return str(response.content.decode())


@pytest.mark.parametrize("address", PAGES)
def test_an_auditor_opens_every_page_and_an_editor_none(world: World, ada: Client, address: str) -> None:
    assert "<h1>" in words(ada, address)
    assert signed_in(world.alice).get(address).status_code == 403
    assert Client().get(address).status_code == 303


@pytest.mark.parametrize("address", FILES)
def test_files_are_downloads_for_those_who_may(world: World, ada: Client, address: str) -> None:
    assert "attachment" in ada.get(address)["Content-Disposition"]
    assert signed_in(world.bob).get(address).status_code == 403


def test_the_way_to_the_trail_is_shown_to_those_who_may(world: World, ada: Client) -> None:
    assert 'href="/audit/"' in words(signed_in(world.olivia), "/chat/")
    assert 'href="/audit/"' not in words(signed_in(world.alice), "/chat/")
    assert 'href="/audit/sinks/"' not in words(ada, "/audit/")
    assert 'href="/audit/sinks/"' in words(signed_in(world.olivia), "/audit/")


def test_the_list_names_who_and_turns_its_pages(ada: Client) -> None:
    text = words(ada, "/audit/?verb=memory.updated")
    assert "alice" in text
    assert text.count("<code>memory.updated</code>") == 50
    whole = words(ada, "/audit/")
    assert "before=" in whole
    address = whole.partition('href="?before=')[2].partition('"')[0]
    assert "memory.updated" in words(ada, f"/audit/?before={address}")


def test_filters_work_without_a_script_and_as_a_part(ada: Client) -> None:
    text = words(ada, "/audit/?verb=member.added&from=2001-01-01")
    assert "<code>member.added</code>" in text
    assert "<code>memory.updated</code>" not in text
    response = ada.get("/audit/?verb=member.added", headers={"HX-Request": "true"})
    assert "<html" not in response.content.decode()
    assert "member.added" in response.content.decode()


@pytest.mark.parametrize("address", ["/audit/?principal=me", "/audit/?from=x", "/audit/permission-changes/?to=x"])
def test_a_filter_that_cannot_be_used_is_422_and_said(ada: Client, address: str) -> None:
    response = ada.get(address)
    assert response.status_code == 422
    assert 'class="fault"' in response.content.decode()


def test_an_entry_shows_its_seal_hashes_and_context(world: World, ada: Client) -> None:
    with acting(world.ada.actor):
        entry = AuditEntry.objects.filter(verb=Verb.MEMORY_UPDATED).earliest("id")
    text = words(ada, f"/audit/{entry.id}/")
    assert bytes(entry.after_hash or b"").hex() in text
    assert "request-of-a-test" in text
    assert signed_in(world.charlie).get(f"/audit/{entry.id}/").status_code == 404


def test_what_stands_in_the_trail_is_shown_as_text(world: World, superuser: Superuser) -> None:
    script = "<script>alert(1)</script>"
    superuser().execute(
        "INSERT INTO governance_auditentry (id, tenant_id, principal_kind, principal_id, verb, outcome, object_type, "
        "object_ids, detail, context, request_id) SELECT uuidv7(), %s, 'member', gen_random_uuid(), %s, 'done', %s, "
        "'{}', jsonb_build_object('x', %s::text), jsonb_build_object('channel', %s::text), %s RETURNING id",
        [world.acme.id, script, script, script, script, script],
    )
    with acting(world.ada.actor):
        entry = AuditEntry.objects.get(verb=script)
    ada = signed_in(world.ada)
    for address in ("/audit/", f"/audit/{entry.id}/"):
        assert script not in words(ada, address)


def test_the_button_verifies_and_names_the_first_bad_row(world: World, ada: Client, superuser: Superuser) -> None:
    assert "Intact." not in words(ada, "/audit/verify/")
    assert "Intact." in ada.post("/audit/verify/").content.decode()
    bent = superuser()
    bent.execute("SET session_replication_role = replica")
    bent.execute(
        "DELETE FROM governance_auditentry WHERE id = (SELECT entry_id FROM governance_auditseal "
        "WHERE tenant_id = %s AND seq = 17)",
        [world.acme.id],
    )
    part = ada.post("/audit/verify/", headers={"HX-Request": "true"}).content.decode()
    assert "Broken." in part
    assert "at seal 17" in part
    assert "<html" not in part


def test_a_checkpoint_is_downloaded_as_it_was_signed(world: World, ada: Client) -> None:
    link = re.search(r"/audit/checkpoints/[0-9a-f-]{36}/", words(ada, "/audit/checkpoints/"))
    assert link is not None
    response = ada.get(link[0])
    assert response.content.decode().strip() == checkpoints_outside(world.acme.id)[-1].text()


def test_an_export_is_asked_for_followed_and_fetched(world: World, ada: Client) -> None:
    assert ada.post("/audit/exports/", {"format": "csv", "verb": "member.added"}).status_code == 303
    going_on = words(ada, "/audit/exports/")
    assert "<progress" in going_on
    assert 'hx-trigger="every 2s"' in going_on
    drain()
    text = words(ada, "/audit/exports/")
    assert "every 2s" not in text
    (export,) = exports_list(actor=world.ada.actor, pages=First(1000))
    address = f"/audit/exports/{export.id}/file/"
    assert address in text
    fetched = cast(StreamingHttpResponse, ada.get(address))
    assert len(async_to_sync(_whole)(fetched)) == export.size
    assert signed_in(world.olivia).get(address).status_code == 403
    assert signed_in(world.charlie).get(address).status_code == 404


def test_forms_that_cannot_be_used_are_422_and_leave_no_row(world: World, ada: Client, superuser: Superuser) -> None:
    for body in ({"format": "xml"}, {"format": "csv", "from": "x"}):
        assert ada.post("/audit/exports/", body).status_code == 422
    olivia = signed_in(world.olivia)
    before = everything(superuser())
    for change in ({"kind": "pigeon"}, {"address": "x"}, {"name": ""}, {"secret": "syslog has none"}):
        response = olivia.post("/audit/sinks/", SINK | change)
        assert response.status_code == 422, change
        assert 'class="fault"' in response.content.decode()
    assert everything(superuser()) == before


def test_sinks_are_made_tried_again_and_removed_by_who_manages(world: World, ada: Client) -> None:
    assert ada.get("/audit/sinks/").status_code == 403
    assert ada.post("/audit/sinks/", SINK).status_code == 403
    olivia = signed_in(world.olivia)
    assert olivia.post("/audit/sinks/", SINK).status_code == 303
    with acting(world.olivia.actor):
        sink = AuditSink.objects.get()
    assert "syslog+tls://log.example" in words(olivia, "/audit/sinks/")
    for who, status in ((ada, 403), (signed_in(world.charlie), 404), (olivia, 303)):
        for action in ("retry", "remove"):
            assert who.post(f"/audit/sinks/{sink.id}/{action}/").status_code == status
    assert "syslog+tls" not in words(olivia, "/audit/sinks/").partition("<form")[0]


def test_without_the_trail_no_page_shows_it(world: World, ada: Client, superuser: Superuser) -> None:
    superuser().execute("REVOKE INSERT ON governance_auditentry FROM memos_app")
    for address in ("/audit/", "/audit/permission-changes/", "/audit/unusual-reads/"):
        response = ada.get(address)
        assert response.status_code == 503
        assert "memory.updated" not in response.content.decode()


async def _whole(response: StreamingHttpResponse) -> bytes:
    return b"".join([part async for part in response])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "webhook", "address": "http://log.example/a", "secret": "x" * 16}, "Begin it with https://."),
        ({"kind": "webhook", "address": "https://10.0.0.1/", "secret": "x" * 16}, "10.0.0.1 is inside a private"),
        ({"kind": "webhook", "address": "log.example", "secret": "x" * 16}, "as in https://log.example/audit."),
        ({"address": "log.example"}, "as in syslog+tls://log.example:6514"),
        ({"kind": "webhook", "address": "https://log.example/"}, "A webhook needs a secret"),
        ({"name": ""}, "Give it a name"),
        ({"secret": "syslog has none"}, "syslog has no secret."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_sink_is_said_in_sentences(world: World, change: dict[str, str], told: str) -> None:
    response = signed_in(world.olivia).post("/audit/sinks/", SINK | change)
    page = response.content.decode()
    assert response.status_code == 422
    assert told in page.partition('role="alert"')[2].partition("</div>")[0]
    assert 'lang="en"' not in page.partition('role="alert"')[2].partition("</div>")[0]
