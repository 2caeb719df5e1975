"""The auditor's pages: each shows what it should, to those who may; forms that cannot be used are 422."""

import re
from collections.abc import Callable
from typing import cast
from zoneinfo import ZoneInfo

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.http import StreamingHttpResponse
from django.test import Client
from django.utils import timezone

from governance.audit.checkpoints import checkpoints_outside
from governance.audit.reading.exports import exports_list
from governance.audit.reading.histogram import entries_histogram
from governance.audit.reading.queries import AuditQuery
from governance.database import acting
from governance.errors import Forbidden
from governance.models import AuditEntry, AuditSink
from governance.pages import First
from governance.vocabulary import Verb
from governance.web.audit_days import times_to_utc
from tests.factories import World
from tests.governance.audit.logs import log_make
from tests.governance.filled_tenants import drain
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case

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
    """The auditor, with an audit log of 60 entries."""
    log_make(world.alice.actor, 60)
    return signed_in(world.ada)


def words(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, (address, response.status_code)
    return str(response.content.decode())


@each_case("address", PAGES)
def test_an_auditor_opens_every_page_and_an_editor_none(world: World, ada: Client, address: str) -> None:
    assert "<h1>" in words(ada, address)
    assert signed_in(world.alice).get(address).status_code == 403
    assert Client().get(address).status_code == 303


@pytest.mark.parametrize("address", FILES)
def test_files_are_downloads_for_those_who_may(world: World, ada: Client, address: str) -> None:
    assert "attachment" in ada.get(address)["Content-Disposition"]
    assert signed_in(world.bob).get(address).status_code == 403


def test_the_way_to_the_audit_log_is_shown_to_those_who_may(world: World, ada: Client) -> None:
    assert 'href="/audit/"' in words(signed_in(world.olivia), "/chat/")
    assert 'href="/audit/"' not in words(signed_in(world.alice), "/chat/")
    assert 'href="/audit/sinks/"' not in words(ada, "/audit/")
    assert 'href="/audit/sinks/"' in words(signed_in(world.olivia), "/audit/")


def test_the_list_names_who_and_turns_its_pages(ada: Client) -> None:
    text = words(ada, "/audit/?verb=memory.updated")
    assert "alice" in text
    assert text.count('title="memory.updated"') == 50
    whole = words(ada, "/audit/")
    assert "before=" in whole
    address = whole.partition('href="?before=')[2].partition('"')[0]
    assert "memory.updated" in words(ada, f"/audit/?before={address}")


def test_filters_work_without_a_script_and_as_a_part(ada: Client) -> None:
    text = words(ada, "/audit/?verb=member.added&from=2001-01-01")
    assert 'title="member.added"' in text
    assert 'title="memory.updated"' not in text
    response = ada.get("/audit/?verb=member.added", headers={"HX-Request": "true"})
    assert "<html" not in response.content.decode()
    assert "member.added" in response.content.decode()


def test_entries_are_sentences_with_names_counts_and_places(world: World) -> None:
    alice = world.client("alice")
    for number in range(3):
        alice.post("memories/", {"content": f"Note {number}."})
    assert len(alice.get("memories/").json["results"]) == 3
    page = words(signed_in(world.ada), "/audit/?verb=memory.listed")
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "looked at 3 memories in /users/alice" in text
    assert "Key of a test" in text
    assert 'class="entry-side">API</span>' in page, "the channel in words"
    assert "(key of alice@acme.example)" in text


def test_the_readers_own_reading_is_folded_and_others_is_not(world: World, ada: Client) -> None:
    for _ in range(3):
        words(ada, "/audit/")
    page = words(ada, "/audit/?verb=audit.listed")
    assert "You looked at 3 pages" in page
    others = words(signed_in(world.olivia), "/audit/?verb=audit.listed")
    assert "You looked at" not in others
    assert 'title="audit.listed"' in others


def test_reads_writes_and_refusals_are_shown_apart(world: World, ada: Client) -> None:
    assert signed_in(world.bob).get("/audit/").status_code == 403
    world.client("alice").get("memories/")
    reads, writes = words(ada, "/audit/?kind=reads"), words(ada, "/audit/?kind=writes")
    assert 'title="memory.listed"' in reads
    assert 'title="memory.updated"' not in reads
    assert 'title="memory.updated"' in writes
    assert 'title="memory.listed"' not in writes
    refused = words(ada, "/audit/?outcome=denied")
    assert 'class="entry entry-bad"' in refused
    assert 'title="memory.updated"' not in refused


def test_a_filter_is_a_chip_that_leads_to_the_list_without_it(ada: Client) -> None:
    page = words(ada, "/audit/?verb=memory.updated&from=2001-01-01")
    assert 'href="?from=2001-01-01"' in page
    assert 'href="?verb=memory.updated"' in page
    assert "Corrected memories</strong>" in page


def test_a_period_begins_at_midnight_of_the_reader(world: World, ada: Client) -> None:
    assert ada.post("/account/time-zone/", {"timezone": "Asia/Tokyo"}).status_code == 303
    with acting(world.ada.actor):
        at = AuditEntry.objects.filter(verb=Verb.MEMBER_ADDED).latest("id").at
    day = at.astimezone(ZoneInfo("Asia/Tokyo")).date()
    assert 'title="member.added"' in words(ada, f"/audit/?verb=member.added&from={day}")
    assert "No entry fits." in words(ada, f"/audit/?verb=member.added&to={day}")


def test_days_of_a_form_are_those_of_the_reader() -> None:
    with timezone.override("Asia/Tokyo"):
        asked = times_to_utc({"from": "2026-03-01", "to": "x", "verb": "2026-03-01"})
    assert asked == {"from": "2026-03-01T00:00:00+09:00", "to": "x", "verb": "2026-03-01"}


def test_the_banner_names_the_seals_and_the_checkpoint(world: World, ada: Client) -> None:
    page = words(ada, "/audit/")
    assert re.search(r"\d+ entries are sealed", page)
    assert "is kept outside the database." in page


@pytest.mark.parametrize("address", ["/audit/?principal=me", "/audit/?from=x", "/audit/permission-changes/?to=x"])
def test_invalid_filter_is_answered_422_with_its_reason(ada: Client, address: str) -> None:
    response = ada.get(address)
    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()


def test_an_entry_shows_its_seal_hashes_and_context(world: World, ada: Client) -> None:
    with acting(world.ada.actor):
        entry = AuditEntry.objects.filter(verb=Verb.MEMORY_UPDATED).earliest("id")
    text = words(ada, f"/audit/{entry.id}/")
    assert bytes(entry.after_hash or b"").hex() in text
    assert "request-of-a-test" in text
    assert signed_in(world.charlie).get(f"/audit/{entry.id}/").status_code == 404


def test_what_stands_in_the_audit_log_is_shown_as_text(world: World, superuser: Superuser) -> None:
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
    assert len(async_to_sync(_read_body)(fetched)) == export.size
    assert signed_in(world.olivia).get(address).status_code == 403
    assert signed_in(world.charlie).get(address).status_code == 404


def test_forms_that_cannot_be_used_are_422_and_leave_no_row(world: World, ada: Client, superuser: Superuser) -> None:
    for body in ({"format": "xml"}, {"format": "csv", "from": "x"}):
        assert ada.post("/audit/exports/", body).status_code == 422
    olivia = signed_in(world.olivia)
    before = read_all_rows(superuser())
    for change in ({"kind": "pigeon"}, {"address": "x"}, {"name": ""}, {"secret": "syslog has none"}):
        response = olivia.post("/audit/sinks/", SINK | change)
        assert response.status_code == 422, change
        assert 'role="alert"' in response.content.decode()
    assert read_all_rows(superuser()) == before


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


def test_without_the_audit_log_no_page_shows_it(world: World, ada: Client, superuser: Superuser) -> None:
    superuser().execute("REVOKE INSERT ON governance_auditentry FROM memos_app")
    for address in ("/audit/", "/audit/permission-changes/", "/audit/unusual-reads/"):
        response = ada.get(address)
        assert response.status_code == 503
        assert "memory.updated" not in response.content.decode()


async def _read_body(response: StreamingHttpResponse) -> bytes:
    return b"".join([part async for part in response])


@each_case(
    ("change", "told"),
    [
        ({"kind": "webhook", "address": "http://log.example/a", "secret": "x" * 16}, "Begin it with https://."),
        ({"kind": "webhook", "address": "https://10.0.0.1/", "secret": "x" * 16}, "10.0.0.1 is inside a private"),
        ({"kind": "webhook", "address": "log.example", "secret": "x" * 16}, "as in https://log.example/audit."),
        ({"address": "log.example"}, "as in syslog+tls://log.example:6514"),
        ({"kind": "webhook", "address": "https://log.example/"}, "A webhook needs a secret"),
        ({"name": ""}, "This field is required."),
        ({"secret": "syslog has none"}, "syslog has no secret."),
    ],
)  # fmt: skip
def test_invalid_sink_is_explained_in_sentences(world: World, change: dict[str, str], told: str) -> None:
    response = signed_in(world.olivia).post("/audit/sinks/", SINK | change)
    page = response.content.decode()
    assert response.status_code == 422
    assert told in page.partition('role="alert"')[2].partition("</div>")[0]
    assert 'lang="en"' not in page.partition('role="alert"')[2].partition("</div>")[0]


def test_chart_counts_reads_writes_and_refusals_of_the_filter(world: World, ada: Client) -> None:
    world.client("alice").post("memories/", {"content": "The heron nests by the weir."})
    world.client("alice").get("memories/")
    world.client("bob").post("memories/", {"content": "Refused."})
    page = ada.get(f"/audit/?principal={world.bob.member.id}").content.decode()
    chart = page.partition('class="panel audit-chart"')[2].partition("</section>")[0]
    assert chart.count("<rect") == 1
    assert 'class="is-bad"' in chart
    page = ada.get("/audit/").content.decode()
    chart = page.partition('class="panel audit-chart"')[2].partition("</section>")[0]
    for kind in ('<rect class="is-on"', "<rect x=", '<rect class="is-bad"'):
        assert kind in chart
    past = ada.get("/audit/?from=2020-01-01&to=2020-01-02").content.decode()
    assert "audit-chart" not in past, "nothing happened then"


def test_chart_counts_only_the_newest_entries(world: World) -> None:
    for _ in range(3):
        world.client("alice").get("memories/")
    found = entries_histogram(actor=world.olivia.actor, query=AuditQuery(), most=2)
    assert (sum(found.reads) + sum(found.writes), found.is_cut) == (2, True)
    with pytest.raises(Forbidden):
        entries_histogram(actor=world.bob.actor, query=AuditQuery())
