"""The auditor's pages name people, keys and things beside their ids, and take names where they took ids."""

import re
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from governance.audit.services import record
from governance.database import acting
from governance.ids import uuid7
from governance.models import AuditEntry, Job, Member
from governance.vocabulary import RoleName, Verb
from governance.web.audit_facts import NAMES
from governance.web.audit_words import DEEDS, ENDINGS, GRANTS, PHRASES
from tests.factories import World, client_for, person_add
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract

CONTENT, TITLE = "The otter sleeps.", "About the otter"


@pytest.fixture
def olivia(world: World) -> Contract:
    """The owner's key, which is called `of a test`; and things of every kind that has a name."""
    olivia = Contract(key=world.olivia.key.text)
    olivia.add(CONTENT, title=TITLE, namespace="/team/otters")
    olivia.post("personas/", {"name": "Night nurse", "kind": "agent"})
    olivia.post("policies/", {"kind": "pii", "name": "No secrets", "document": {"action": "flag"}})
    olivia.post("role-templates/", {"name": "Front desk", "role": "viewer"})
    return olivia


def words(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, (address, response.content)
    return str(response.content.decode())


def entry_of(world: World, verb: Verb) -> AuditEntry:
    with acting(world.ada.actor):
        return AuditEntry.objects.filter(verb=verb).latest("id")


def call(world: World, who: str, name: str) -> None:
    with acting(world.ada.actor):
        Member.objects.filter(id=world.person(who).member.id).update(display_name=name)


@each_case(
    ("verb", "name"),
    [
        (Verb.NAMESPACE_CREATED, "/team/otters"),
        (Verb.PERSONA_CREATED, "Night nurse"),
        (Verb.POLICY_CREATED, "No secrets"),
        (Verb.TEMPLATE_CREATED, "Front desk"),
        (Verb.MEMBER_ADDED, "ada@acme.example"),
    ],
)
def test_the_audit_log_and_its_entry_name_what_was_done_to(
    world: World, olivia: Contract, verb: Verb, name: str
) -> None:
    ada = signed_in(world.ada)
    entry = entry_of(world, verb)
    assert name in words(ada, f"/audit/?verb={verb}")
    assert name in words(ada, f"/audit/{entry.id}/")


def test_a_deleted_namespace_has_the_name_that_it_had(world: World, olivia: Contract) -> None:
    made = olivia.post("namespaces/", {"path": "/team/gulls"}).json["id"]
    assert olivia.delete(f"namespaces/{made}/").status == 204
    page = words(signed_in(world.ada), f"/audit/?verb={Verb.NAMESPACE_DELETED}")
    assert "/team/gulls" in page
    assert "/team/gulls~" not in page


def test_the_audit_log_names_the_key_and_whose_it_is(world: World, olivia: Contract) -> None:
    text = words(signed_in(world.ada), f"/audit/?verb={Verb.POLICY_CREATED}")
    assert "of a test" in text
    assert f"mos_{world.olivia.key.prefix}_…" in text
    assert "key of olivia@acme.example" in text


def plain_text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_a_key_of_somebody_with_anothers_name_is_reported_by_the_address(world: World, olivia: Contract) -> None:
    call(world, "olivia", "bob@acme.example")
    text = words(signed_in(world.ada), f"/audit/?verb={Verb.POLICY_CREATED}")
    assert "key of bob@acme.example (olivia@acme.example)" in text


def test_no_page_of_the_audit_log_shows_what_a_memory_says(world: World, olivia: Contract) -> None:
    ada = signed_in(world.ada)
    entry = entry_of(world, Verb.MEMORY_CREATED)
    for address in ("/audit/", f"/audit/{entry.id}/", "/audit/permission-changes/", "/audit/unusual-reads/"):
        shown = words(ada, address)
        assert CONTENT not in shown
        assert TITLE not in shown


def test_the_report_of_permission_changes_says_who_got_what(world: World, olivia: Contract) -> None:
    namespace = olivia.get("memories/").json["results"][0]["namespace"]["id"]
    about = {"principal": {"kind": "member", "id": str(world.bob.member.id)}, "action": "read"}
    granted = about | {"object": {"type": "namespace", "id": namespace}, "expires_at": "2126-03-01T09:30:00Z"}
    made = olivia.post("grants/", granted)
    assert made.status == 201
    assert olivia.delete(f"grants/{made.json['id']}/").status == 204
    changed = olivia.patch(f"members/{world.alice.member.id}/", {"role": "viewer"})
    assert changed.status == 200, changed.json
    text = words(signed_in(world.ada), "/audit/permission-changes/")
    given = text.partition('title="grant.created"')[2].partition("</li>")[0]
    assert "gave bob@acme.example reading of /team/otters" in plain_text(given)
    assert "expires 1 Mar 2126, 09:30" in plain_text(given)
    assert made.json["id"] not in given, "no id of something without a name"
    taken = text.partition('title="grant.revoked"')[2].partition("</li>")[0]
    assert "took from bob@acme.example reading of /team/otters" in plain_text(taken)
    role = text.partition('title="member.role_changed"')[2].partition("</li>")[0]
    assert "changed the role of alice@acme.example from editor to viewer" in plain_text(role)


def test_every_verb_and_every_fact_has_words_in_both_languages() -> None:
    for language in ("en", "zh-hans"):
        with translation.override(language):
            for verb in Verb:
                assert PHRASES.get(verb) or ENDINGS.get(verb.rpartition(".")[2]) or verb.startswith("grant."), verb
            words_of = [*PHRASES.values(), *ENDINGS.values(), *GRANTS.values(), *DEEDS.values(), *NAMES.values()]
            if language != "en":
                untranslated = [word for word in words_of if not any(ord(letter) > 0x3000 for letter in str(word))]
                assert untranslated == []


@each_case("asked", ["olivia@acme.example", "OLIVIA@acme.example", "olivia", "of a test", ""])
def test_who_is_asked_for_by_mail_address_by_name_or_by_id(world: World, olivia: Contract, asked: str) -> None:
    bob = client_for(world.bob.key.text)
    assert bob.get("memories/").status == 200
    if asked == "of a test":  # all keys of the tests are called so
        asked = f"mos_{world.olivia.key.prefix}_…"
    text = words(
        signed_in(world.ada), f"/audit/?{urlencode({'principal': asked or str(world.olivia.member.id)})}"
    ).partition('id="entries"')[2]
    assert "policy.created" in text
    assert "memory.listed" not in text


@pytest.mark.parametrize(("asked", "verb"), [("/team/otters", "namespace.created"), ("Front desk", "template.created")])
def test_an_object_is_asked_for_by_its_path_or_name(world: World, olivia: Contract, asked: str, verb: str) -> None:
    text = words(signed_in(world.ada), f"/audit/?{urlencode({'object': asked})}").partition('id="entries"')[2]
    assert verb in text
    assert "policy.created" not in text


@pytest.mark.parametrize("asked", ["bob@acme.example", "BOB@acme.example"])
def test_nobody_stands_in_the_way_of_an_address_by_being_called_so(world: World, olivia: Contract, asked: str) -> None:
    call(world, "alice", "bob@acme.example")
    for name in ("alice", "bob"):
        assert world.client(name).get("memories/").status == 200
    shown = words(signed_in(world.ada), f"/audit/?{urlencode({'principal': asked, 'verb': Verb.MEMORY_LISTED})}")
    assert shown.count('title="memory.listed"') == 1


def test_nothing_stands_in_the_way_of_a_path_by_being_called_so(world: World, olivia: Contract) -> None:
    olivia.post("personas/", {"name": "/team/otters", "kind": "agent"})
    text = words(signed_in(world.ada), f"/audit/?{urlencode({'object': '/team/otters'})}").partition('id="entries"')[2]
    assert "namespace.created" in text
    assert "persona.created" not in text


@each_case(
    ("asked", "told"),
    [
        ({"principal": "nobody@acme.example"}, "Nothing here has this id or name."),
        ({"principal": "charlie@other.example"}, "Nothing here has this id or name."),
        ({"principal": "x" * 300}, "Nothing here has this id or name."),
        ({"principal": "a\x00b"}, "Nothing here has this id or name."),
        ({"principal": "of a test"}, "Several have this name"),
        ({"from": "bogus"}, "Write a date or a time"),
        ({"from": "2027-02-01", "to": "2027-01-01"}, "The end is before the beginning."),
    ],
)
@each_case("htmx", [True, False])
def test_invalid_filter_is_explained_beside_its_field(
    world: World, olivia: Contract, asked: dict[str, str], told: str, htmx: bool
) -> None:
    headers = {"HX-Request": "true"} if htmx else {}
    response = signed_in(world.ada).get(f"/audit/?{urlencode(asked)}", headers=headers)
    text = response.content.decode()
    assert response.status_code == 422
    assert told in text
    assert "policy.created</code>" not in text
    assert text.count('id="entries"') == 1
    if htmx:
        assert "<html" not in text
    else:
        assert all(f'value="{value}"' in text for value in asked.values() if "\x00" not in value)


def test_invalid_filter_is_explained_in_chinese(world: World) -> None:
    page = signed_in(world.ada).get("/audit/?from=bogus", headers={"Accept-Language": "zh-CN"})
    assert page.status_code == 422
    assert "请填写日期或时间" in page.content.decode()


@pytest.mark.parametrize("address", ["audit/", "audit/permission-changes/", "audit/permission-changes/csv/"])
def test_an_end_before_the_beginning_is_refused(world: World, address: str) -> None:
    backwards = "?from=2027-02-01&to=2027-01-01"
    reply = client_for(world.ada.key.text).get(f"{address}{backwards}")
    assert reply.status == 400
    assert [fault["field"] for fault in reply.json["errors"]] == ["to"]
    if address != "audit/":
        page = signed_in(world.ada).get(f"/{address}{backwards}")
        assert page.status_code == 422
    assert client_for(world.bob.key.text).get(f"{address}{backwards}").status == 403


def test_an_export_is_asked_for_by_name_and_says_of_whom_it_is(world: World, olivia: Contract) -> None:
    ada = signed_in(world.ada)
    refused = ada.post("/audit/exports/", {"format": "csv", "principal": "nobody"})
    assert refused.status_code == 422
    assert "Nothing here has this id or name." in refused.content.decode()
    assert ada.post("/audit/exports/", {"format": "csv", "principal": "alice@acme.example"}).status_code == 303
    with acting(world.ada.actor):
        assert Job.objects.get().settings["filters"] == {"principal": str(world.alice.member.id)}
    assert "alice@acme.example" in words(ada, "/audit/exports/")


def test_names_cost_the_same_for_many(world: World, olivia: Contract) -> None:
    ada = signed_in(world.ada)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            words(ada, "/audit/")
        return len([query for query in queries if "governance_" in query["sql"]])

    few = cost()
    for number in range(8):
        person = person_add(world.acme, f"more{number}@acme.example", RoleName.VIEWER)
        client_for(person.key.text).get("memories/")
    assert cost() == few <= 20


def test_an_id_within_a_name_is_reported_by_name(world: World, olivia: Contract) -> None:
    bob_id = str(world.bob.member.id)
    quota = {"holder": {"kind": "member", "id": bob_id}, "limits": {"memories": 5}}
    assert olivia.send("PUT", "quotas/", quota).status == 200
    text = words(signed_in(world.ada), "/audit/permission-changes/")
    row = text.partition('title="quota.changed"')[2].partition("</li>")[0]
    assert row.count("quota.member.bob@acme.example") == 2  # the object's name, and the detail's
    assert bob_id not in row


def test_an_address_in_the_audit_log_stays_as_it_was_called(world: World, olivia: Contract) -> None:
    bob_id = str(world.bob.member.id)
    assert client_for(world.alice.key.text).patch(f"members/{bob_id}/", {"role": "owner"}).status == 403
    entry = entry_of(world, Verb.ACCESS_DENIED)
    assert f"/members/{bob_id}/" in words(signed_in(world.ada), f"/audit/{entry.id}/")


def test_memories_are_named_by_their_namespace(world: World, olivia: Contract) -> None:
    olivia.add("The otter wakes.", namespace="/team/otters")
    assert len(olivia.get("memories/?namespace=/team/otters").json["results"]) == 2
    text = words(signed_in(world.ada), f"/audit/?verb={Verb.MEMORY_LISTED}").partition('id="entries"')[2]
    assert "in /team/otters" in text
    assert "otter wakes" not in text
    assert text.count("/team/otters") == text.count('title="memory.listed"') == 1


def test_an_entry_that_names_very_many_shows_the_first_and_says_how_many_more(world: World, olivia: Contract) -> None:
    ids = [uuid7() for _ in range(10_000)]
    with acting(world.ada.actor):
        record(actor=world.olivia.actor, verb=Verb.MEMORY_LISTED, object_type="memory", object_ids=ids)
    ada, address = signed_in(world.ada), f"/audit/{entry_of(world, Verb.MEMORY_LISTED).id}/"
    with CaptureQueriesContext(connection) as queries:
        text = words(ada, address)
    assert all(str(id) in text for id in ids[:100])
    assert str(ids[100]) not in text
    assert "and 9900 more" in text
    assert max(len(query["sql"]) for query in queries if "UNION ALL" in query["sql"]) < 100_000
    assert "另有 9900 个" in ada.get(address, headers={"Accept-Language": "zh-CN"}).content.decode()


def test_a_name_is_no_markup(world: World, olivia: Contract) -> None:
    nasty = "<script>alert(1)</script>"
    nurse = olivia.post("personas/", {"name": nasty, "kind": "agent"}).json["id"]
    about = {"principal": {"kind": "member", "id": str(world.bob.member.id)}, "action": "read"}
    assert olivia.post("grants/", about | {"object": {"type": "persona", "id": nurse}}).status == 201
    entry = entry_of(world, Verb.PERSONA_CREATED)
    reader = signed_in(world.olivia)
    for address in ("/audit/", "/audit/permission-changes/", f"/audit/{entry.id}/", "/access/"):
        text = words(reader, address)
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)" in text
        assert "&amp;lt;" not in text
