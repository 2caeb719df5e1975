"""Pages of policies and quotas, without JavaScript and with htmx; and the purpose that a browser reads for."""

import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.test import Client

from governance.database import acting
from governance.models import Member
from tests.factories import World
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.policies.policy_factories import DAY, create_policy

Superuser = Callable[[], psycopg.Connection]
FIELDS: dict[str, dict[str, object]] = {
    "retention": {"ttl_days": "1", "namespace": "/team"},
    "sharing": {"share_with": ["member"], "roles": ["admin"], "approval": "always"},
    "purpose": {"purposes": "treatment, billing", "namespace": "/team"},
    "pii": {"action": "redact", "kinds": "card=refuse"},
    "quota": {"holder_kind": "tenant", "memories": "5"},
}


def form_fields(kind: str) -> dict[str, Any]:
    return {"name": kind, "enabled": "on", **FIELDS[kind]}


@each_case("kind", sorted(FIELDS))
def test_a_policy_of_each_kind_is_made_and_changed_by_its_form(world: World, olivia: Contract, kind: str) -> None:
    browser = signed_in(world.olivia)
    assert browser.get(f"/policies/new/{kind}/").status_code == 200
    saved = browser.post(f"/policies/new/{kind}/", {**form_fields(kind), "save": "yes"})
    assert saved.status_code == 303
    address = saved.headers["Location"]
    page = browser.get(address).content.decode()
    stored = olivia.get("policies/").json["results"][0]
    assert (stored["kind"], stored["version"], stored["enabled"]) == (kind, 1, True)
    version = re.findall(r'name="version" value="(\d+)"', page)
    changed = browser.post(address, {**form_fields(kind), "enabled": "", "version": version[0], "save": "yes"})
    assert changed.status_code == 303
    after = olivia.get("policies/?enabled=false").json["results"][0]
    assert (after["version"], after["enabled"], after["document"]) == (2, False, stored["document"])
    versions = browser.get(f"{address}versions/").content.decode()
    assert "Version 1" in versions
    assert "Version 2" in versions


@pytest.mark.parametrize(
    ("kind", "document", "sentence"),
    [
        (
            "retention",
            {"where": {"namespace": "/guests", "tags": ["visit"]}, "ttl_seconds": 30 * DAY, "grace_days": 1},
            "Memories in /guests (tag visit) expire after 30 days, unless their writer says otherwise. "
            "Memories in /guests (tag visit) can be restored for 1 day after their deletion.",
        ),
        ("retention", {"max_seconds": 7200}, "Memories everywhere live for 2 hours at most."),
        (
            "sharing",
            {"share_with": ["member"], "roles": ["admin"], "publish": True},
            "Memories everywhere may be shared with: Members. Of the roles, only: admin. Packs may publish them.",
        ),
        ("sharing", {}, "Memories everywhere may be shared with nobody. No pack may publish them."),
        (
            "sharing",
            {"publish": True, "approval": "always"},
            "Memories everywhere may be shared with nobody. Packs may publish them. "
            "A second member approves: for every pack.",
        ),
        (
            "purpose",
            {"where": {"sensitivities": ["restricted"]}, "purposes": ["treatment"]},
            "Memories everywhere (restricted) can be read for these purposes only: treatment.",
        ),
        (
            "pii",
            {"action": "redact", "kinds": {"card": "refuse"}},
            "When a text has personal data or a secret: replace what was found. Memories everywhere. "
            "Otherwise for: payment card: refuse it.",
        ),
        (
            "quota",
            {"holder": {"kind": "member"}, "limits": {"memories": 5000, "requests_per_minute": 60}},
            "Each member may use at most 5,000 memories, 60 requests a minute.",
        ),
    ],
)
def test_a_policy_is_explained_in_a_sentence_beside_its_document(
    world: World, olivia: Contract, kind: str, document: dict[str, Any], sentence: str
) -> None:
    policy_id = create_policy(olivia, kind, document)
    browser = signed_in(world.olivia)
    for address in ("/policies/", f"/policies/{policy_id}/", f"/policies/{policy_id}/versions/"):
        assert sentence in browser.get(address).content.decode(), address
    assert "&quot;where&quot;" in browser.get(f"/policies/{policy_id}/").content.decode() or kind == "quota"


def test_a_preview_explains_what_is_not_saved_yet(world: World, olivia: Contract) -> None:
    page = signed_in(world.olivia).post("/policies/new/retention/", {**form_fields("retention"), "simulate": "yes"})
    assert "Memories in /team expire after 1 day" in page.content.decode()
    assert olivia.get("policies/").json["count"] == 0


def test_quotas_have_bars_that_warn_when_they_are_nearly_full(world: World, olivia: Contract) -> None:
    olivia.add("One.")
    create_policy(olivia, "quota", {"holder": {"kind": "tenant"}, "limits": {"memories": 1, "bytes": 10**9}})
    page = signed_in(world.olivia).get("/quotas/").content.decode()
    assert "1 of 1" in page
    assert 'class="meter is-bad"' in page
    assert 'class="meter "' in page


def test_it_says_what_saving_would_do_and_saves_nothing(world: World, alice: Contract, superuser: Superuser) -> None:
    memory = alice.add("Team.", namespace="/team")["id"]
    browser = signed_in(world.olivia)
    before = read_all_rows(superuser())
    for htmx in ({}, {"HX-Request": "true"}):
        page = browser.post("/policies/new/retention/", {**form_fields("retention"), "simulate": "yes"}, headers=htmx)
        assert page.status_code == 200
        assert f"/memories/{memory}/" in page.content.decode()
        assert ("<html" in page.content.decode()) is not bool(htmx)
        assert read_all_rows(superuser()) == before


@pytest.mark.parametrize("button", ["save", "simulate"])
def test_what_cannot_be_is_reported_at_its_field(world: World, olivia: Contract, button: str) -> None:
    browser = signed_in(world.olivia)
    for fields, field in (
        ({"ttl_days": "9", "max_days": "1"}, "ttl_days"),
        ({"namespace": "team"}, "namespace"),
        ({"ttl_days": "x"}, "ttl_days"),
    ):
        page = browser.post("/policies/new/retention/", {**form_fields("retention"), **fields, button: "yes"})
        assert page.status_code == 422
        assert f'id="id_{field}_error"' in page.content.decode()
    assert olivia.get("policies/").json["count"] == 0


def test_an_older_reading_does_not_overwrite_a_newer_one(world: World, olivia: Contract) -> None:
    policy_id = create_policy(olivia, "retention", {"ttl_seconds": DAY})
    browser, fields = signed_in(world.olivia), {**form_fields("retention"), "version": "1", "save": "yes"}
    assert browser.post(f"/policies/{policy_id}/", fields).status_code == 303
    assert browser.post(f"/policies/{policy_id}/", fields).status_code == 422
    assert olivia.get(f"policies/{policy_id}/").json["version"] == 2


@pytest.mark.parametrize(("who", "reads"), [("alice", 403), ("bob", 403), ("ada", 200), ("charlie", 404)])
def test_who_may_not_change_a_policy_changes_none(
    world: World, olivia: Contract, superuser: Superuser, who: str, reads: int
) -> None:
    policy_id = create_policy(olivia, "retention", {"ttl_seconds": DAY})
    browser = signed_in(world.person(who))
    before = read_all_rows(superuser())["governance_policyversion"]
    assert browser.get(f"/policies/{policy_id}/").status_code == reads
    assert browser.get(f"/policies/{policy_id}/versions/").status_code == reads
    refused = browser.post(f"/policies/{policy_id}/", {**form_fields("retention"), "version": "1", "save": "yes"})
    assert refused.status_code == (404 if who == "charlie" else 403)
    if who != "charlie":
        assert browser.post("/policies/new/retention/", {**form_fields("retention"), "save": "yes"}).status_code == 403
    assert read_all_rows(superuser())["governance_policyversion"] == before


def test_nobody_opens_them_without_signing_in(world: World) -> None:
    for address in ("/policies/", "/policies/new/pii/", "/quotas/", "/purpose/"):
        assert Client().get(address).status_code == 303


def test_everyone_sees_their_use(world: World, alice: Contract) -> None:
    alice.add("One.")
    page = signed_in(world.alice).get("/quotas/")
    assert page.status_code == 200
    assert "alice@acme.example" in page.content.decode()
    assert str(world.alice.member.id) not in page.content.decode()
    assert "/policies/new/quota/" not in page.content.decode()


def test_an_unknown_kind_is_nothing(world: World) -> None:
    assert signed_in(world.olivia).get("/policies/new/law/").status_code == 404


def test_a_browser_reads_for_the_purpose_that_its_member_names(world: World, olivia: Contract, alice: Contract) -> None:
    create_policy(olivia, "purpose", {"where": {"namespace": "/clinic"}, "purposes": ["treatment"]})
    memory = alice.add("Bound.", namespace="/clinic")["id"]
    browser = signed_in(world.alice)
    assert browser.get(f"/memories/{memory}/").status_code == 403
    assert "treatment" in browser.get("/purpose/").content.decode()
    assert browser.post("/purpose/", {"purpose": "treatment"}).status_code == 303
    assert browser.get(f"/memories/{memory}/").status_code == 200
    assert browser.post("/purpose/", {"purpose": ""}).status_code == 303
    assert browser.get(f"/memories/{memory}/").status_code == 403
    assert browser.post("/purpose/", {"purpose": "x" * 201}).status_code == 422


def test_what_a_policy_says_is_no_markup(world: World, olivia: Contract) -> None:
    nasty = "<script>alert(1)</script>"
    policy_id = create_policy(olivia, "purpose", {"where": {"tags": [nasty]}, "purposes": [nasty]}, name=nasty)
    browser = signed_in(world.olivia)
    for address in ("/policies/", f"/policies/{policy_id}/", f"/policies/{policy_id}/versions/", "/purpose/"):
        assert nasty not in browser.get(address).content.decode(), address


@pytest.mark.parametrize("said", ["bob@acme.example", "bob", "id"])
def test_a_quota_takes_a_member_by_mail_address_name_or_id_and_shows_the_name(
    world: World, olivia: Contract, said: str
) -> None:
    browser, bob_id = signed_in(world.olivia), str(world.bob.member.id)
    whose = {"holder_kind": "member", "holder_id": bob_id if said == "id" else said}
    fields = {**form_fields("quota"), **whose, "save": "yes"}
    saved = browser.post("/policies/new/quota/", fields)
    assert saved.status_code == 303
    assert olivia.get("policies/").json["results"][0]["document"]["holder"] == {"kind": "member", "id": bob_id}
    address = saved.headers["Location"]
    assert 'value="bob@acme.example"' in browser.get(address).content.decode()
    assert browser.post(address, {**fields, "holder_id": "bob@acme.example", "version": "1"}).status_code == 303
    for who in (world.olivia, world.ada):
        for place in ("/policies/", "/quotas/", f"{address}versions/"):
            page = signed_in(who).get(place).content.decode()
            assert "bob@acme.example" in page, place
            assert "[&#x27;" not in page
            assert bob_id not in page or place.endswith("versions/")


def test_a_quota_is_that_of_the_address_whoever_else_is_called_so(world: World, olivia: Contract) -> None:
    with acting(world.olivia.actor):
        Member.objects.filter(id=world.alice.member.id).update(display_name="bob@acme.example")
    whose = {"holder_kind": "member", "holder_id": "bob@acme.example"}
    assert (
        signed_in(world.olivia)
        .post("/policies/new/quota/", {**form_fields("quota"), **whose, "save": "yes"})
        .status_code
        == 303
    )
    holder = olivia.get("policies/").json["results"][0]["document"]["holder"]
    assert holder == {"kind": "member", "id": str(world.bob.member.id)}


@each_case("said", ["nobody", "charlie@other.example", "Acme", "of a test"])
def test_a_quota_of_nobody_is_reported_at_its_field(world: World, olivia: Contract, said: str) -> None:
    kind = "api_key" if said == "of a test" else "member"  # every key of the tests is called so
    fields = {**form_fields("quota"), "holder_kind": kind, "holder_id": said}
    for button in ("save", "simulate"):
        page = signed_in(world.olivia).post("/policies/new/quota/", {**fields, button: "yes"})
        assert page.status_code == 422
        assert 'id="id_holder_id_error"' in page.content.decode()
        assert f'value="{said}"' in page.content.decode()
    assert olivia.get("policies/").json["count"] == 0


def test_a_quota_that_was_set_by_id_is_listed_by_name(world: World, olivia: Contract) -> None:
    bob_id = str(world.bob.member.id)
    quota = {"holder": {"kind": "member", "id": bob_id}, "limits": {"memories": 1}}
    set_one = olivia.send("PUT", "quotas/", quota)
    assert set_one.status in {200, 201}, set_one.json
    page = signed_in(world.ada).get("/policies/").content.decode()
    assert "Quota: bob@acme.example" in page
    assert bob_id not in page


def test_what_would_be_reached_is_reported_by_name(world: World, olivia: Contract, alice: Contract) -> None:
    alice.add("One.")
    alice.add("Two.")
    fields = {**form_fields("quota"), "holder_kind": "member", "memories": "1", "simulate": "yes"}
    page = signed_in(world.olivia).post("/policies/new/quota/", fields).content.decode()
    assert "alice@acme.example" in page


@each_case(("field", "value"), [("namespace", "team"), ("retention_class", "a b")])
@each_case("language", ["en", "zh-CN"])
def test_a_pattern_is_reported_in_words(world: World, olivia: Contract, field: str, value: str, language: str) -> None:
    document = {"where": {"namespace": value}} if field == "namespace" else {field: value}
    refused = olivia.post("policies/", {"kind": "retention", "name": "p", "document": document | {"ttl_seconds": DAY}})
    assert refused.status == 400
    assert "^" not in refused.json["errors"][0]["message"]
    fields = {**form_fields("retention"), field: value, "save": "yes"}
    page = signed_in(world.olivia).post("/policies/new/retention/", fields, headers={"Accept-Language": language})
    told = page.content.decode().partition(f'id="id_{field}_error">')[2].partition("<")[0]
    assert page.status_code == 422
    assert "^" not in told
    assert ("请" in told) is (language == "zh-CN")
