"""Every form of the pages: a bad value is answered by the form, with the error at its field and all that was typed."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from django.http import QueryDict

import governance.web
import vault.web
from governance.web.page_forms import PageForm
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, pack_of
from vault.web.memory_forms import BulkForm
from vault.web.policy_forms import PolicyForm

for package in (governance.web, vault.web):
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)

TESTS = Path(__file__).parents[2]
TESTED_ELSEWHERE = {  # form → its tests
    "AddressForm": "governance/accounts/test_passwords.py",
    "AnswererForm": "vault/web/test_chat_suggestions.py",
    "BeginForm": "vault/web/test_chat_suggestions.py",
    "CodeForm": "governance/accounts/test_second_factor.py",
    "ComingForm": "vault/web/test_store_subscriptions.py",
    "ConnectionForm": "mcp/test_oauth.py",
    "ConstantsForm": "vault/layers/test_layers_page.py",
    "ConversationForm": "vault/web/test_chat.py",
    "DecisionForm": "vault/store/test_reports.py",
    "DeclineForm": "vault/web/test_store_knowledge.py",
    "LayerForm": "vault/lifecycle/test_fusion.py",
    "MemoryForm": "vault/web/test_memory_list.py",
    "NewPasswordForm": "governance/accounts/test_passwords.py",
    "OfferForm": "vault/web/test_store_publish.py",
    "PeerChangeForm": "vault/exchange/test_sync.py",
    "ProposalForm": "vault/web/test_store_knowledge.py",
    "QuestionsForm": "vault/web/test_store_subscriptions.py",
    "RatingForm": "vault/store/test_ratings.py",
    "RefusalForm": "vault/web/test_store_publish.py",
    "ReportForm": "vault/store/test_reports.py",
    "RevocationForm": "vault/web/test_store_contracts.py",
    "RewordForm": "vault/web/test_store_subscriptions.py",
    "RoleForm": "governance/members/test_members.py",
    "SettlementForm": "vault/exchange/test_sync.py",
    "SignInForm": "governance/accounts/test_passwords.py",
    "StepForm": "vault/pipelines/test_pipelines.py",
    "SubscribeForm": "vault/web/test_store_subscriptions.py",
    "TraceForm": "vault/web/test_store_knowledge.py",
    "UploadForm": "vault/exchange/test_uploads.py",
    "UseForm": "vault/forms/test_task.py",
    "VersionForm": "vault/web/test_store_publish.py",
    "WordingsForm": "vault/web/test_store_knowledge.py",
    "WriterForm": "vault/api/test_quarantine.py",
}
SECRETS = {"current", "new", "secret", "key"}  # never written into a page


@dataclass(frozen=True)
class Case:
    """A form with one bad field. id: of its input, if not Django's."""

    form: str
    address: str
    bad: tuple[str, str]
    good: dict[str, str] = field(default_factory=dict)
    id: str = ""


LONG = "x" * 501
CASES = [
    Case("NewKeyForm", "/settings/keys/", ("expires", "2020-01-01"),
         {"member": "{member}", "name": "CI", "scopes": "chat", "purpose": "care", "namespaces": "/team"}),
    Case("NewKeyForm", "/settings/keys/", ("scopes", ""),
         {"member": "{member}", "name": "CI", "expires": "2099-01-31"}),
    Case("KeyForm", "/settings/keys/{key}/", ("namespaces", "team"), {"name": "CI", "purpose": "care"}),
    Case("RotationForm", "/settings/keys/{key}/rotate/", ("hours", "-1")),
    Case("InvitationForm", "/settings/members/", ("email", "no address"), {"role": "editor"}),
    Case("InvitationForm", "/settings/members/", ("email", "bob@acme.example"), {"role": "editor"}),
    Case("ProviderForm", "/settings/sign-in/", ("domains", "nowhere"),
         {"issuer": "https://id.example", "client_id": "memos", "secret": "s", "default_role": "viewer"}),
    Case("PersonaForm", "/personas/", ("name", ""), {"kind": "agent"}),
    Case("PersonaNameForm", "/personas/{persona}/", ("name", LONG)),
    Case("TemplateForm", "/presets/", ("namespaces", "team"), {"name": "nurse", "role": "viewer", "scopes": "chat"}),
    Case("ApplyForm", "/presets/{preset}/apply/", ("holder", "")),
    Case("GrantForm", "/access/", ("expires_at", "soon"),
         {"path": "/team", "holder": "member:{member}", "effect": "deny", "action": "write", "address": "10.0.0.0/8"}),
    Case("GrantForm", "/access/memory/{memory}/", ("address", "nowhere"),
         {"holder": "member:{member}", "effect": "deny", "action": "write", "begins": "08:00", "channel": "chat"}),
    Case("PasswordForm", "/account/password/", ("new", "short")),
    Case("NameForm", "/account/name/", ("name", "")),
    Case("TimeZoneForm", "/account/time-zone/", ("timezone", "Mars/Base")),
    Case("PurposeForm", "/purpose/", ("purpose", "a\u200bb")),
    Case("ExportForm", "/audit/exports/", ("from", "soon"),
         {"verb": "member.added", "outcome": "done", "request_id": "r-1", "to": "2027-02-28", "format": "csv"}),
    Case("SinkForm", "/audit/sinks/", ("address", "x"), {"name": "log", "kind": "syslog"}),
    Case("WebhookForm", "/integrations/webhooks/new/", ("url", "x"),
         {"namespace": "/team", "events": "memory.created"}),
    Case("ScheduleForm", "/jobs/schedules/new/?kind=audit.export", ("timezone", "Mars/Base"),
         {"rhythm": "day", "at": "03:00", "settings-format": "csv"}),
    Case("EndpointForm", "/settings/models/add/", ("retries", "many"), {"model": "m", "address": "https://a.example/v1"}),
    Case("PolicyForm", "/policies/new/retention/", ("ttl_days", "x"), {"namespace": "/team", "max_days": "9"}),
    Case("PeerForm", "/exchange/peers/new/", ("address", "x"),
         {"name": "north", "key": "k", "namespace": "/team", "remote_namespace": "/other", "direction": "pull"}),
    Case("SubjectForm", "/subjects/", ("reference", "")),
    Case("ConfirmationForm", "/subjects/{subject}/erase/", ("confirmation", "another")),
    Case("DeletionForm", "/settings/organisation/", ("understood", ""), {"slug": "acme"}),
    Case("DeletionForm", "/settings/organisation/", ("slug", "other"), {"understood": "on"}),
    Case("HoldForm", "/holds/", ("filters", "no query"), {"over": "query", "reason": "Case 17", "tag": "pump"}),
    Case("HoldForm", "/holds/", ("reason", ""), {"over": "subject", "subject": "carla"}),
    Case("FreezeForm", "/memories/{memory}/freeze/", ("reason", LONG), id="freeze_reason"),
    Case("AddForm", "/memories/new/", ("expires_at", "soon"),
         {"content": "The pump leaks.", "title": "Pump", "tags": "pump, ward", "semantic_type": "event",
          "sensitivity": "public", "namespace": "/team"}, id="add-expires_at"),
    Case("EditForm", "/memories/{memory}/edit/", ("reason", LONG),
         {"version": "1", "title": "Pump", "tags": "pump", "semantic_type": "event", "sensitivity": "public",
          "valid_from": "2026-01-31T12:00", "content": "It leaks."}, id="edit-reason"),
    Case("FusionForm", "/memories/fuse/", ("reason", LONG),
         {"confirmed": "yes", "id": "{memory}", "content": "Both leak."}, id="operation-reason"),
    Case("SplitForm", "/memories/{memory}/split/", ("reason", LONG), {"content": "One leaks."}, id="operation-reason"),
    Case("CopyForm", "/memories/{memory}/copy/", ("namespace", "x" * 201), id="operation-namespace"),
    Case("FeedbackForm", "/memories/{memory}/feedback/", ("correction", "x" * 32_001),
         {"kind": "wrong", "version": "1"}, id="operation-correction"),
    Case("BulkForm", "/memories/bulk/", ("tag", "x" * 101),
         {"action": "tag", "confirmed": "yes", "id": "{memory}"}, id="bulk-tag"),
    Case("LeavingForm", "/exchange/export/", ("query", "x" * 1001), {"namespace": "/team"}, id="export-query"),
    Case("LayerSettingsForm", "/settings/layers/", ("theta", "high"), {"tau": "7", "replacement": "heat"}, id="theta"),
    Case("ProfileForm", "/layers/{persona}/profile/", ("new_value", LONG), {"new_name": "motto"}),
    Case("PipelineForm", "/pipelines/new/", ("steps", "no list"), {"name": "Digest"}, id="steps"),
    Case("ViewForm", "/memories/views/", ("name", "x" * 61), {"query": "/memories/?tags=team"}),
    Case("NewNamespaceForm", "/namespaces/", ("path", "team"), {"kind": "expert", "quota": "7", "read_only": "on"}),
    Case("NamespaceForm", "/namespaces/{namespace}/", ("quota", "many"), {"kind": "expert", "read_only": "on"}),
    Case("MoveForm", "/namespaces/{namespace}/move/", ("path", "team")),
    Case("MountForm", "/namespaces/{namespace}/mounts/", ("task_id", "x" * 201), {"writable": "on"}),
    Case("ConversionForm", "/forms/", ("namespace", "/nowhere"), {"title": "Rules", "kind": "parameter"}),
    Case("PackForm", "/store/own/{pack}/", ("title", ""), {"description": "Of birds.", "licence": "CC0-1.0"}),
    Case("ReasonForm", "/store/own/{pack}/1.0.0/withdraw/", ("reason", ""), id="{version}_reason"),
]  # fmt: skip


class Controls(HTMLParser):
    """The named controls of a page with their values and the ids that describe them; the texts of errors by id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: set[tuple[str, str]] = set()
        self.described: dict[str, set[str]] = {}
        self.errors: dict[str, str] = {}
        self._select = self._area = self._error = self._group = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name, kind = given.get("name", ""), given.get("type", "")
        if tag == "fieldset":
            self._group = given.get("aria-describedby", "")
        if tag == "option" and "selected" in given:
            self.values.add((self._select, given["value"]))
        if tag in {"input", "select", "textarea"}:
            self.described.setdefault(name, set()).update((given.get("aria-describedby") or self._group).split())
            self._select, self._area = (name if tag == "select" else ""), (name if tag == "textarea" else "")
            if tag == "input" and (kind not in {"checkbox", "radio"} or "checked" in given):
                self.values.add((name, given.get("value", "on")))
        if given.get("role") == "alert":
            self._error = given.get("id", "")

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values.add((self._area, data.strip()))
        if self._error and data.strip():
            self.errors[self._error] = data.strip()
        self._area = self._error = ""

    def handle_endtag(self, tag: str) -> None:
        self._group = "" if tag == "fieldset" else self._group


@pytest.fixture
def ids(world: World, olivia: Contract) -> dict[str, str]:
    """Ids for the addresses of forms."""
    memory = olivia.add("The pump leaks.", namespace="/team")
    pack = pack_of(olivia)
    version = build_version(olivia, pack, memories_of(olivia, TEXTS[0]))
    return {
        "member": str(world.bob.member.id),
        "key": str(world.alice.key.id),
        "memory": memory["id"],
        "namespace": memory["namespace"]["id"],
        "persona": olivia.post("personas/", {"name": "Guide", "kind": "agent"}).json["id"],
        "preset": olivia.post("role-templates/", {"name": "clerk"}).json["id"],
        "subject": olivia.post("subjects/", {"reference": "customer-9"}).json["id"],
        "pack": pack,
        "version": version["id"],
    }


@each_case("case", CASES)
def test_bad_value_is_answered_by_the_form_with_all_that_was_typed(
    world: World, ids: dict[str, str], case: Case
) -> None:
    name, value = case.bad
    good = {key: text.format(**ids) for key, text in case.good.items()}
    answer = signed_in(world.olivia).post(case.address.format(**ids), good | {name: value})
    assert answer.status_code == 422
    controls = Controls(answer.content.decode())
    error = f"{case.id.format(**ids) or f'id_{name}'}_error"
    assert controls.errors.get(error), controls.errors
    assert error in controls.described[name]
    typed = {pair for pair in (good | {name: value}).items() if pair[0] not in SECRETS and pair[1]}
    assert typed <= controls.values, typed - controls.values


def test_tags_of_a_bulk_action_are_separated_by_commas() -> None:
    form = BulkForm(QueryDict("tag=red, green"), action="tag")
    assert form.is_valid()
    assert form.arguments().tags == ("red", "green")


def test_every_form_of_the_pages_is_tried() -> None:
    assert _list_forms(PageForm) == {case.form for case in CASES} | set(TESTED_ELSEWHERE)
    assert all((TESTS / path).exists() for path in TESTED_ELSEWHERE.values())


def _list_forms(base: type[PageForm]) -> set[str]:
    """Return the names of all forms; those of policies, which are drawn alike, by one name."""
    below = [form for form in base.__subclasses__() if base is not PolicyForm]
    return {form.__name__ for form in below}.union(*map(_list_forms, below))
