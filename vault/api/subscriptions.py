"""subscriptions/ and contracts/ of the REST API: the two sides of an agreement on a pack."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, describe, page_of
from governance.api.fields import FlagField, OneOfField, StrictSerializer, TextField
from governance.api.jobs import JobPromiseSchema, JobSchema
from governance.api.pages import show_page
from governance.api.schema import NullTextField, Schema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.personas.selectors import persona_get
from governance.text_values import read_month
from governance.vocabulary import Permission
from vault.api.fields import ContentField
from vault.api.inputs import make_label_field
from vault.api.pack_schema import WhyInput
from vault.api.schema import NamespaceSchema
from vault.store.contracts import (
    contract_allow,
    contract_get,
    contract_invoice,
    contract_reads,
    contract_revoke,
    contracts_list,
)
from vault.store.selections import EVERYTHING, LONGEST_QUERY, MOST_TAGS, Selection, selection_open
from vault.store.subscriptions import (
    SubscriptionDraft,
    SubscriptionView,
    reads_list,
    subscription_compare,
    subscription_create,
    subscription_end,
    subscription_get,
    subscription_update,
    subscription_upgrade,
    subscriptions_list,
)
from vault.store.upgrades import ChangeKind, UpgradePlan, override_remove, override_set, upgrade_plan
from vault.vocabulary import ContractState, Delivery, QuotaPeriod

MONTH = OpenApiParameter("month", str, description="As `2026-11`. Default: the present one.")
RANGE = (
    "Versions that are taken: `*` any, `^1.2.0` up to the next major, `~1.2.0` up to the next minor, `1.2.0` that one."
)
MOST_SHOWN = 1_000


def _make_tags_field() -> serializers.ListField:
    return serializers.ListField(
        child=TextField(max_length=100),
        max_length=MOST_TAGS,
        required=False,
        help_text="Take only memories with one of these tags, and those near `query`. Both empty: all.",
    )


def _make_query_field() -> TextField:
    return TextField(
        max_length=LONGEST_QUERY,
        required=False,
        allow_blank=True,
        help_text="Take only memories near this in meaning, and those with one of `tags`.",
    )


class SubscriptionInput(StrictSerializer):
    publication = serializers.UUIDField()
    range = TextField(max_length=20, required=False, help_text=f"{RANGE} Default: any.")
    delivery = OneOfField(Delivery, required=False, help_text="Default: pull, new versions come on demand.")
    purposes = serializers.ListField(
        child=TextField(max_length=200),
        max_length=20,
        required=False,
        help_text="Of those that the terms permit. Default: all of them.",
    )
    persona = make_label_field(help_text="Id or name of the persona on which the pack is mounted at once.")
    tags = _make_tags_field()
    query = _make_query_field()


class SubscriptionChangesInput(StrictSerializer):
    range = TextField(max_length=20, required=False, help_text=RANGE)
    delivery = OneOfField(Delivery, required=False)
    trusted = FlagField(
        required=False,
        help_text="An official source: its trust is 0.9, and its versions are compared with own memories.",
    )
    tags = _make_tags_field()
    query = _make_query_field()


class UpgradeInput(StrictSerializer):
    version = TextField(max_length=20, help_text="As 1.4.0.")


class OverrideInput(StrictSerializer):
    content = ContentField()


class QuotaOfReadsSchema(Schema):
    reads = serializers.IntegerField(source="quota", allow_null=True, help_text="In each period; null: no limit.")
    period = serializers.ChoiceField(choices=list(QuotaPeriod))


class AgreementSchema(Schema):
    state = serializers.ChoiceField(choices=list(ContractState))
    version = NullTextField(source="row.number", help_text="The installed one.")
    quota = QuotaOfReadsSchema(source="row")
    used = serializers.IntegerField(help_text="Reads in the present period.")
    reads = serializers.IntegerField(source="row.reads", help_text="Since the beginning.")
    valid_from = serializers.DateTimeField(source="row.created_at")
    valid_to = serializers.DateTimeField(source="row.valid_to", allow_null=True)
    purposes = serializers.ListField(source="row.purposes", child=serializers.CharField(), help_text="Empty: any.")
    price = serializers.CharField(source="row.price")
    export = serializers.BooleanField(source="row.may_export", help_text="Memories of the pack may be exported.")
    reason = serializers.CharField(source="row.reason", help_text="Why it was revoked.")


class SubscriptionSchema(AgreementSchema):
    """A subscription: its agreed terms and the installed version."""

    id = serializers.UUIDField(source="row.id")
    publication = serializers.UUIDField(source="row.publication_id")
    name = serializers.CharField(source="row.name", help_text="As `organisation/pack`.")
    title = serializers.CharField(source="row.title")
    publisher = serializers.CharField(source="row.publisher")
    namespace = NamespaceSchema(source="row.namespace")
    range = serializers.CharField(source="row.range")
    delivery = serializers.ChoiceField(source="row.delivery", choices=list(Delivery))
    trusted = serializers.BooleanField(source="row.is_trusted")
    tags = serializers.ListField(child=serializers.CharField(), help_text="Of the memories that are taken. Empty: any.")
    query = serializers.CharField(help_text="What the memories that are taken are about. Empty: anything.")
    available = NullTextField(source="row.available", help_text="A newer version that the range takes.")
    reads_left = serializers.IntegerField(allow_null=True, help_text="In the present period; null: no limit.")

    def make_tags(self, view: SubscriptionView) -> Any:
        return selection_open(view.row).tags

    def make_query(self, view: SubscriptionView) -> str:
        return selection_open(view.row).query


class ContractSchema(AgreementSchema):
    """A contract as the publisher sees it."""

    id = serializers.UUIDField(source="row.id")
    publication = serializers.UUIDField(source="row.publication_id")
    name = serializers.CharField(source="pack", help_text="As `organisation/pack`.")
    subscription = serializers.UUIDField(source="row.subscription_id", help_text="The subscriber's id of it.")
    subscriber = serializers.CharField(source="row.subscriber")
    may_return = serializers.BooleanField(
        source="row.may_return", help_text="After a revocation: the subscriber may subscribe again."
    )


class SubscriptionJobSchema(Schema):
    subscription = SubscriptionSchema(source="view")
    job = JobSchema()


class InvocationSchema(Schema):
    number = serializers.IntegerField(help_text="Counted from 1 in a contract, without gaps.")
    memories = serializers.IntegerField(help_text="Returned by the call.")
    at = serializers.DateTimeField()


class MemoryChangeSchema(Schema):
    id = serializers.UUIDField(source="key", help_text="Of the memory in the pack.")
    change = serializers.ChoiceField(source="kind", choices=list(ChangeKind))
    before = serializers.CharField()
    after = serializers.CharField()
    overridden = serializers.BooleanField(
        source="is_overridden", help_text="Your own wording stands instead, and stays."
    )


class UpgradePlanSchema(Schema):
    dry_run = serializers.BooleanField()
    before = serializers.CharField()
    after = serializers.CharField()
    changelog = serializers.CharField()
    added = serializers.IntegerField()
    changed = serializers.IntegerField()
    removed = serializers.IntegerField()
    overridden = serializers.IntegerField()
    changes = MemoryChangeSchema(many=True, help_text=f"The first {MOST_SHOWN}.")


class OverrideSchema(Schema):
    memory_id = serializers.UUIDField(source="id")
    version = serializers.IntegerField(help_text="Of the memory.")


class InvoiceSchema(Schema):
    number = serializers.CharField(source="bill.number")
    provider = serializers.CharField()
    reads = serializers.IntegerField(source="bill.reads")
    since = serializers.DateTimeField(source="bill.since")
    until = serializers.DateTimeField(source="bill.until")
    price = serializers.CharField(source="bill.price")
    document = serializers.CharField(help_text="Markdown.")


class SubscriptionsView(ApiView):
    @describe("subscriptions_list", page_of(SubscriptionSchema), parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the organisation's subscriptions to packs, newest first."""
        authorize(self.actor(), Permission.MEMORY_READ)
        return show_page(self, subscriptions_list)

    @describe(
        "subscriptions_create",
        SubscriptionJobSchema,
        status=202,
        request=SubscriptionInput,
        parameters=[ONCE],
        may=[404, 409],
    )
    def post(self, request: Request) -> Response:
        """Subscribe to a publication under its terms, and install it in a read-only namespace, as a job.

        The namespace is `/packs/<organisation>/<pack>`. Searches include it if it is mounted or named.
        """
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        body = self.read_body()
        draft = SubscriptionDraft(
            publication_id=body["publication"],
            range=body.get("range", "*"),
            delivery=Delivery(body.get("delivery", Delivery.PULL)),
            purposes=tuple(dict.fromkeys(body.get("purposes", ()))),
            persona_id=persona_get(actor=actor, reference=body["persona"]).id if "persona" in body else None,
            selection=_read_selection(body, EVERYTHING),
        )
        return self.post_once(lambda: subscription_create(actor=actor, draft=draft))


class SubscriptionDetailView(ApiView):
    @describe("subscriptions_read", SubscriptionSchema, may=[404])
    def get(self, request: Request, subscription_id: UUID) -> object:
        """Read one subscription, with the number of reads left."""
        return subscription_get(actor=self.actor(), subscription_id=subscription_id)

    @describe("subscriptions_update", SubscriptionSchema, request=SubscriptionChangesInput, may=[404, 409])
    def patch(self, request: Request, subscription_id: UUID) -> object:
        """Change the range and delivery of versions, whether the pack is trusted as an official source, and its part.

        If `tags` or `query` change, a job installs the memories that they take, and removes the others.
        """
        actor = self.actor()
        body = self.read_body(_make_check(self, subscription_id))
        delivery = Delivery(body["delivery"]) if "delivery" in body else None
        selection = None
        if {"tags", "query"} & body.keys():
            present = subscription_get(actor=actor, subscription_id=subscription_id)
            selection = _read_selection(body, selection_open(present.row))
        return subscription_update(
            actor=actor,
            subscription_id=subscription_id,
            range=body.get("range"),
            delivery=delivery,
            is_trusted=body.get("trusted"),
            selection=selection,
        )

    @describe("subscriptions_delete", JobPromiseSchema, status=202, may=[404, 409])
    def delete(self, request: Request, subscription_id: UUID) -> object:
        """Uninstall the pack, as a job. Its memories become unreadable at once."""
        actor = self.actor()
        self.read_body(_make_check(self, subscription_id))
        ended = subscription_end(actor=actor, subscription_id=subscription_id)
        return ended.job


class SubscriptionInvocationsView(ApiView):
    @describe("subscriptions_invocations", page_of(InvocationSchema), parameters=PAGE, may=[404])
    def get(self, request: Request, subscription_id: UUID) -> object:
        """List the calls that returned memories of the pack, newest first. The publisher has the same list."""
        return show_page(self, reads_list, subscription_id=subscription_id)


class SubscriptionUpgradeView(ApiView):
    @describe(
        "subscriptions_upgrade",
        JobPromiseSchema,
        status=202,
        request=UpgradeInput,
        parameters=[ONCE, DRY_RUN],
        also={200: UpgradePlanSchema},
        may=[404, 409],
    )
    def post(self, request: Request, subscription_id: UUID) -> Response:
        """Install another version, as a job. A dry run compares it with the installed one, memory by memory."""
        actor = self.actor()
        ask = _make_check(self, subscription_id)
        number = self.read_body(ask)["version"]
        if self.dry_run:
            return Response(plan_json(upgrade_plan(actor=actor, subscription_id=subscription_id, number=number)))

        def call() -> object:
            asked = subscription_upgrade(actor=actor, subscription_id=subscription_id, number=number)
            return asked.job

        return self.post_once(call)


class SubscriptionCompareView(ApiView):
    @describe("subscriptions_compare", JobPromiseSchema, status=202, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, subscription_id: UUID) -> Response:
        """Compare the pack with own memories, as a job. Its results are reviews: `reviews/?kind=pack_contradicts`.

        A trusted pack is also compared on each installation and upgrade.
        """
        actor, ask = self.actor(), _make_check(self, subscription_id)
        self.read_body(ask)
        return self.post_once(lambda: subscription_compare(actor=actor, subscription_id=subscription_id))


class OverrideView(ApiView):
    @describe("subscriptions_override", OverrideSchema, request=OverrideInput, may=[404, 409, 423])
    def put(self, request: Request, subscription_id: UUID, memory_id: UUID) -> object:
        """Replace the wording of an installed memory for your organisation. Upgrades leave it unchanged."""
        actor = self.actor()
        content = self.read_body(_make_check(self, subscription_id))["content"]
        return override_set(actor=actor, subscription_id=subscription_id, memory_id=memory_id, content=content)

    @describe("subscriptions_override_delete", JobPromiseSchema, status=202, may=[404, 409])
    def delete(self, request: Request, subscription_id: UUID, memory_id: UUID) -> object:
        """Restore the pack's own wording, as a job that installs the memory again."""
        actor = self.actor()
        self.read_body(_make_check(self, subscription_id))
        return override_remove(actor=actor, subscription_id=subscription_id, memory_id=memory_id)


class ContractsView(ApiView):
    @describe("contracts_list", page_of(ContractSchema), parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the contracts of the organisation's own publications, newest first."""
        authorize(self.actor(), Permission.STORE_MANAGE)
        return show_page(self, contracts_list)


class ContractDetailView(ApiView):
    @describe("contracts_read", ContractSchema, may=[404])
    def get(self, request: Request, contract_id: UUID) -> object:
        """Read one contract."""
        return contract_get(actor=self.actor(), contract_id=contract_id)


class ContractInvocationsView(ApiView):
    @describe("contracts_invocations", page_of(InvocationSchema), parameters=PAGE, may=[404])
    def get(self, request: Request, contract_id: UUID) -> object:
        """List the subscriber's reads as reported so far, newest first: numbers and times, no content."""
        return show_page(self, contract_reads, contract_id=contract_id)


class ContractInvoiceView(ApiView):
    @describe("contracts_invoice", InvoiceSchema, parameters=[MONTH], may=[404])
    def get(self, request: Request, contract_id: UUID) -> object:
        """Read the invoice of a month: its reads, and the price that the contract records."""
        actor = self.actor()
        with self.after(lambda: contract_get(actor=actor, contract_id=contract_id)):
            refuse_unknown_parameters(request, "month")
            month = read_month(request.query_params.get("month", ""))
        return contract_invoice(actor=actor, contract_id=contract_id, month=month)


class ContractRevokeView(ApiView):
    @describe("contracts_revoke", ContractSchema, request=WhyInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, contract_id: UUID) -> Response:
        """End a contract. Its subscriber reads nothing from then on, and loses the memories within a minute."""
        actor = self.actor()
        reason = self.read_body(lambda: contract_get(actor=actor, contract_id=contract_id))["reason"]
        return self.post_once(lambda: contract_revoke(actor=actor, contract_id=contract_id, reason=reason))


class ContractAllowView(ApiView):
    @describe("contracts_allow", ContractSchema, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, contract_id: UUID) -> Response:
        """Allow the subscriber of a revoked contract to subscribe again."""
        actor = self.actor()
        self.read_body(lambda: contract_get(actor=actor, contract_id=contract_id))
        return self.post_once(lambda: contract_allow(actor=actor, contract_id=contract_id))


def _make_check(view: ApiView, subscription_id: UUID) -> Callable[[], None]:
    """Return a check that the subscription exists and the actor may change it, to run before the body is read."""

    def ask() -> None:
        subscription_get(actor=view.actor(), subscription_id=subscription_id)
        authorize(view.actor(), Permission.STORE_MANAGE)

    return ask


def _read_selection(body: dict[str, Any], present: Selection) -> Selection:
    """Return the part of the pack that a body asks for. present: the values of the fields that it does not name."""
    tags = tuple(dict.fromkeys(body.get("tags", present.tags)))
    return Selection(tags, body.get("query", present.query).strip())


def plan_json(plan: UpgradePlan) -> dict[str, Any]:
    counts = {str(kind): plan.count(kind) for kind in ChangeKind} | {"overridden": plan.overridden}
    return UpgradePlanSchema.json(vars(plan) | counts | {"dry_run": True, "changes": plan.changes[:MOST_SHOWN]})
