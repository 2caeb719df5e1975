"""subscriptions/ and contracts/ of the REST API: the two sides of an agreement on a pack."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, PageSchema, describe
from governance.api.fields import FlagField, OneOfField, StrictSerializer, TextField
from governance.api.jobs import JobPromiseSchema, JobSchema, job_json
from governance.api.pages import CursorPages
from governance.api.representations import time_json
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.personas.selectors import persona_get
from governance.vocabulary import Permission
from vault.api.fields import ContentField
from vault.api.inputs import make_label_field, read
from vault.api.pack_schema import WhyInput
from vault.api.schema import NamespaceSchema, Schema
from vault.store.contracts import (
    ContractView,
    contract_allow,
    contract_get,
    contract_invoice,
    contract_reads,
    contract_revoke,
    contracts_list,
)
from vault.store.selections import EVERYTHING, LONGEST_QUERY, MOST_TAGS, Selection, selection_open
from vault.store.subscriptions import (
    Requested,
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

if TYPE_CHECKING:
    from vault.models import PackRead

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
    reads = serializers.IntegerField(allow_null=True, help_text="In each period; null: no limit.")
    period = serializers.ChoiceField(choices=list(QuotaPeriod))


class AgreementSchema(Schema):
    state = serializers.ChoiceField(choices=list(ContractState))
    version = serializers.CharField(allow_null=True, help_text="The installed one.")
    quota = QuotaOfReadsSchema()
    used = serializers.IntegerField(help_text="Reads in the present period.")
    reads = serializers.IntegerField(help_text="Since the beginning.")
    valid_from = serializers.DateTimeField()
    valid_to = serializers.DateTimeField(allow_null=True)
    purposes = serializers.ListField(child=serializers.CharField(), help_text="Empty: any.")
    price = serializers.CharField()
    export = serializers.BooleanField(help_text="Memories of the pack may be exported.")
    reason = serializers.CharField(help_text="Why it was revoked.")


class SubscriptionSchema(AgreementSchema):
    """A subscription: its agreed terms and the installed version."""

    id = serializers.UUIDField()
    publication = serializers.UUIDField()
    name = serializers.CharField(help_text="As `organisation/pack`.")
    title = serializers.CharField()
    publisher = serializers.CharField()
    namespace = NamespaceSchema()
    range = serializers.CharField()
    delivery = serializers.ChoiceField(choices=list(Delivery))
    trusted = serializers.BooleanField()
    tags = serializers.ListField(child=serializers.CharField(), help_text="Of the memories that are taken. Empty: any.")
    query = serializers.CharField(help_text="What the memories that are taken are about. Empty: anything.")
    available = serializers.CharField(allow_null=True, help_text="A newer version that the range takes.")
    reads_left = serializers.IntegerField(allow_null=True, help_text="In the present period; null: no limit.")


class ContractSchema(AgreementSchema):
    """A contract as the publisher sees it."""

    id = serializers.UUIDField()
    publication = serializers.UUIDField()
    name = serializers.CharField(help_text="As `organisation/pack`.")
    subscription = serializers.UUIDField(help_text="The subscriber's id of it.")
    subscriber = serializers.CharField()
    may_return = serializers.BooleanField(help_text="After a revocation: the subscriber may subscribe again.")


class SubscriptionJobSchema(Schema):
    subscription = SubscriptionSchema()
    job = JobSchema()


class InvocationSchema(Schema):
    number = serializers.IntegerField(help_text="Counted from 1 in a contract, without gaps.")
    memories = serializers.IntegerField(help_text="Returned by the call.")
    at = serializers.DateTimeField()


class MemoryChangeSchema(Schema):
    id = serializers.UUIDField(help_text="Of the memory in the pack.")
    change = serializers.ChoiceField(choices=list(ChangeKind))
    before = serializers.CharField()
    after = serializers.CharField()
    overridden = serializers.BooleanField(help_text="Your own wording stands instead, and stays.")


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
    memory_id = serializers.UUIDField()
    version = serializers.IntegerField(help_text="Of the memory.")


class InvoiceSchema(Schema):
    number = serializers.CharField()
    provider = serializers.CharField()
    reads = serializers.IntegerField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    price = serializers.CharField()
    document = serializers.CharField(help_text="Markdown.")


class SubscriptionListSchema(PageSchema):
    results = SubscriptionSchema(many=True)


class ContractListSchema(PageSchema):
    results = ContractSchema(many=True)


class InvocationListSchema(PageSchema):
    results = InvocationSchema(many=True)


class SubscriptionsView(ApiView):
    @describe("subscriptions_list", SubscriptionListSchema, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """List the organisation's subscriptions to packs, newest first."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        pages = CursorPages(request)
        return pages.envelope([subscription_json(view) for view in subscriptions_list(actor=actor, pages=pages)])

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
        refuse_unknown_parameters(request)
        body = read(SubscriptionInput, request)
        draft = SubscriptionDraft(
            publication_id=body["publication"],
            range=body.get("range", "*"),
            delivery=Delivery(body.get("delivery", Delivery.PULL)),
            purposes=tuple(dict.fromkeys(body.get("purposes", ()))),
            persona_id=persona_get(actor=actor, reference=body["persona"]).id if "persona" in body else None,
            selection=_read_selection(body, EVERYTHING),
        )
        return self.post_once(lambda: Reply(202, _requested_json(subscription_create(actor=actor, draft=draft))))


class SubscriptionDetailView(ApiView):
    @describe("subscriptions_read", SubscriptionSchema, may=[404])
    def get(self, request: Request, subscription_id: UUID) -> Response:
        """Read one subscription, with the number of reads left."""
        view = subscription_get(actor=self.actor(), subscription_id=subscription_id)
        refuse_unknown_parameters(request)
        return Response(subscription_json(view))

    @describe("subscriptions_update", SubscriptionSchema, request=SubscriptionChangesInput, may=[404, 409])
    def patch(self, request: Request, subscription_id: UUID) -> Response:
        """Change the range and delivery of versions, whether the pack is trusted as an official source, and its part.

        If `tags` or `query` change, a job installs the memories that they take, and removes the others.
        """
        actor = self.actor()
        with self.after(_make_check(self, subscription_id)):
            refuse_unknown_parameters(request)
            body = read(SubscriptionChangesInput, request)
        delivery = Delivery(body["delivery"]) if "delivery" in body else None
        selection = None
        if {"tags", "query"} & body.keys():
            present = subscription_get(actor=actor, subscription_id=subscription_id)
            selection = _read_selection(body, selection_open(present.row))
        view = subscription_update(
            actor=actor,
            subscription_id=subscription_id,
            range=body.get("range"),
            delivery=delivery,
            is_trusted=body.get("trusted"),
            selection=selection,
        )
        return Response(subscription_json(view))

    @describe("subscriptions_delete", JobPromiseSchema, status=202, may=[404, 409])
    def delete(self, request: Request, subscription_id: UUID) -> Response:
        """Uninstall the pack, as a job. Its memories become unreadable at once."""
        actor = self.actor()
        with self.after(_make_check(self, subscription_id)):
            refuse_unknown_parameters(request)
        ended = subscription_end(actor=actor, subscription_id=subscription_id)
        return Response({"job": job_json(ended.job)}, status=202)


class SubscriptionInvocationsView(ApiView):
    @describe("subscriptions_invocations", InvocationListSchema, parameters=PAGE, may=[404])
    def get(self, request: Request, subscription_id: UUID) -> Response:
        """List the calls that returned memories of the pack, newest first. The publisher has the same list."""
        pages = CursorPages(request)
        rows = reads_list(actor=self.actor(), subscription_id=subscription_id, pages=pages)
        return pages.envelope([invocation_json(row) for row in rows])


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
        with self.after(ask):
            refuse_unknown_parameters(request, "dry_run")
            dry_run = flag(request, "dry_run")
            number = read(UpgradeInput, request)["version"]
        if dry_run:
            return Response(plan_json(upgrade_plan(actor=actor, subscription_id=subscription_id, number=number)))

        def call() -> Reply:
            asked = subscription_upgrade(actor=actor, subscription_id=subscription_id, number=number)
            return Reply(202, {"job": job_json(asked.job)})

        return self.post_once(call, ask=ask)


class SubscriptionCompareView(ApiView):
    @describe("subscriptions_compare", JobPromiseSchema, status=202, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, subscription_id: UUID) -> Response:
        """Compare the pack with own memories, as a job. Its results are reviews: `reviews/?kind=pack_contradicts`.

        A trusted pack is also compared on each installation and upgrade.
        """
        actor, ask = self.actor(), _make_check(self, subscription_id)
        with self.after(ask):
            refuse_unknown_parameters(request)

        def call() -> Reply:
            job = subscription_compare(actor=actor, subscription_id=subscription_id)
            return Reply(202, {"job": job_json(job)})

        return self.post_once(call, ask=ask)


class OverrideView(ApiView):
    @describe("subscriptions_override", OverrideSchema, request=OverrideInput, may=[404, 409, 423])
    def put(self, request: Request, subscription_id: UUID, memory_id: UUID) -> Response:
        """Replace the wording of an installed memory for your organisation. Upgrades leave it unchanged."""
        actor = self.actor()
        with self.after(_make_check(self, subscription_id)):
            refuse_unknown_parameters(request)
            content = read(OverrideInput, request)["content"]
        cube = override_set(actor=actor, subscription_id=subscription_id, memory_id=memory_id, content=content)
        return Response({"memory_id": str(cube.id), "version": cube.version})

    @describe("subscriptions_override_delete", JobPromiseSchema, status=202, may=[404, 409])
    def delete(self, request: Request, subscription_id: UUID, memory_id: UUID) -> Response:
        """Restore the pack's own wording, as a job that installs the memory again."""
        actor = self.actor()
        with self.after(_make_check(self, subscription_id)):
            refuse_unknown_parameters(request)
        job = override_remove(actor=actor, subscription_id=subscription_id, memory_id=memory_id)
        return Response({"job": job_json(job)}, status=202)


class ContractsView(ApiView):
    @describe("contracts_list", ContractListSchema, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """List the contracts of the organisation's own publications, newest first."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        pages = CursorPages(request)
        return pages.envelope([contract_json(view) for view in contracts_list(actor=actor, pages=pages)])


class ContractDetailView(ApiView):
    @describe("contracts_read", ContractSchema, may=[404])
    def get(self, request: Request, contract_id: UUID) -> Response:
        """Read one contract."""
        view = contract_get(actor=self.actor(), contract_id=contract_id)
        refuse_unknown_parameters(request)
        return Response(contract_json(view))


class ContractInvocationsView(ApiView):
    @describe("contracts_invocations", InvocationListSchema, parameters=PAGE, may=[404])
    def get(self, request: Request, contract_id: UUID) -> Response:
        """List the subscriber's reads as reported so far, newest first: numbers and times, no content."""
        pages = CursorPages(request)
        rows = contract_reads(actor=self.actor(), contract_id=contract_id, pages=pages)
        return pages.envelope([invocation_json(row) for row in rows])


class ContractInvoiceView(ApiView):
    @describe("contracts_invoice", InvoiceSchema, parameters=[MONTH], may=[404])
    def get(self, request: Request, contract_id: UUID) -> Response:
        """Read the invoice of a month: its reads, and the price that the contract records."""
        actor = self.actor()
        with self.after(lambda: contract_get(actor=actor, contract_id=contract_id)):
            refuse_unknown_parameters(request, "month")
            month = _parse_month(request.query_params.get("month", ""))
        made = contract_invoice(actor=actor, contract_id=contract_id, month=month)
        return Response(
            {
                "number": made.bill.number,
                "provider": made.provider,
                "reads": made.bill.reads,
                "since": time_json(made.bill.since),
                "until": time_json(made.bill.until),
                "price": made.bill.price,
                "document": made.document,
            }
        )


class ContractRevokeView(ApiView):
    @describe("contracts_revoke", ContractSchema, request=WhyInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, contract_id: UUID) -> Response:
        """End a contract. Its subscriber reads nothing from then on, and loses the memories within a minute."""
        actor = self.actor()

        def ask() -> None:
            contract_get(actor=actor, contract_id=contract_id)

        with self.after(ask):
            refuse_unknown_parameters(request)
            reason = read(WhyInput, request)["reason"]

        def call() -> Reply:
            return Reply(200, contract_json(contract_revoke(actor=actor, contract_id=contract_id, reason=reason)))

        return self.post_once(call, ask=ask)


class ContractAllowView(ApiView):
    @describe("contracts_allow", ContractSchema, request=None, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, contract_id: UUID) -> Response:
        """Allow the subscriber of a revoked contract to subscribe again."""
        actor = self.actor()

        def ask() -> None:
            contract_get(actor=actor, contract_id=contract_id)

        with self.after(ask):
            refuse_unknown_parameters(request)
        return self.post_once(
            lambda: Reply(200, contract_json(contract_allow(actor=actor, contract_id=contract_id))), ask=ask
        )


def _make_check(view: ApiView, subscription_id: UUID) -> Callable[[], None]:
    """Return a check that the subscription exists and the actor may change it, to run before the body is read."""

    def ask() -> None:
        subscription_get(actor=view.actor(), subscription_id=subscription_id)
        authorize(view.actor(), Permission.STORE_MANAGE)

    return ask


def _parse_month(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
    except ValueError as error:
        raise Invalid(errors=[FieldError("month", "a month such as 2026-11 is needed")]) from error


def _requested_json(requested: Requested) -> dict[str, Any]:
    return {"subscription": subscription_json(requested.view), "job": job_json(requested.job)}


def _read_selection(body: dict[str, Any], present: Selection) -> Selection:
    """Return the part of the pack that a body asks for. present: the values of the fields that it does not name."""
    tags = tuple(dict.fromkeys(body.get("tags", present.tags)))
    return Selection(tags, body.get("query", present.query).strip())


def subscription_json(view: SubscriptionView) -> dict[str, Any]:
    row, selection = view.row, selection_open(view.row)
    return {
        "id": str(row.id),
        "publication": str(row.publication_id),
        "name": row.name,
        "title": row.title,
        "publisher": row.publisher,
        "namespace": {"id": str(row.namespace_id), "path": row.namespace.path},
        "range": row.range,
        "delivery": row.delivery,
        "trusted": row.is_trusted,
        "tags": list(selection.tags),
        "query": selection.query,
        "available": row.available or None,
        "reads_left": view.reads_left,
        **_agreement_json(view),
    }


def contract_json(view: ContractView) -> dict[str, Any]:
    row = view.row
    return {
        "id": str(row.id),
        "publication": str(row.publication_id),
        "name": view.pack,
        "subscription": str(row.subscription_id),
        "subscriber": row.subscriber,
        "may_return": row.may_return,
        **_agreement_json(view),
    }


def _agreement_json(view: SubscriptionView | ContractView) -> dict[str, Any]:
    row = view.row
    return {
        "state": str(view.state),
        "version": row.number or None,
        "quota": {"reads": row.quota, "period": row.period},
        "used": view.used,
        "reads": row.reads,
        "valid_from": time_json(row.created_at),
        "valid_to": time_json(row.valid_to),
        "purposes": row.purposes,
        "price": row.price,
        "export": row.may_export,
        "reason": row.reason,
    }


def invocation_json(row: "PackRead") -> dict[str, Any]:
    return {"number": row.number, "memories": row.memories, "at": time_json(row.at)}


def plan_json(plan: UpgradePlan) -> dict[str, Any]:
    return {
        "dry_run": True,
        "before": plan.before,
        "after": plan.after,
        "changelog": plan.changelog,
        **{str(kind): plan.count(kind) for kind in ChangeKind},
        "overridden": plan.overridden,
        "changes": [
            {
                "id": str(change.key),
                "change": str(change.kind),
                "before": change.before,
                "after": change.after,
                "overridden": change.is_overridden,
            }
            for change in plan.changes[:MOST_SHOWN]
        ],
    }
