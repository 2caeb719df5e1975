"""Endpoints of language models, set by a tenant's admins and called in their order instead of the installation's."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db.models import Max

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NotFound
from governance.ids import uuid7
from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.outbound import Refused, refuse_plaintext, refuse_private_literal
from governance.vocabulary import Permission, Verb
from vault.endpoints.rules import Price, PricedModel
from vault.models import ModelEndpoint
from vault.providers.ports import ProviderUnavailable
from vault.providers.registry import llm, tenant_llm
from vault.vocabulary import EXTRACTIVE

OBJECT_TYPE = "model_endpoint"
MOST_ENDPOINTS = 8  # of a tenant
LONGEST_MODEL, LONGEST_ADDRESS, LONGEST_KEY = 100, 500, 500
LONGEST_TIMEOUT, MOST_RETRIES = 300, 3
HIGHEST_PRICE = Decimal(100_000)
DECIMALS = 4  # of a price
DEFAULT_TIMEOUT, DEFAULT_RETRIES = 60, 1
PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class EndpointDraft:
    """The settings of an endpoint. address: up to and with /v1, as OpenAI's. timeout_seconds: the wait for the next
    word. Prices: of a million tokens; cached_price: of those that the server took from its cache, None for
    prompt_price.
    """

    model: str
    address: str
    key: str = field(default="", repr=False)
    timeout_seconds: int = DEFAULT_TIMEOUT
    retries: int = DEFAULT_RETRIES
    prompt_price: Decimal = Decimal(0)
    completion_price: Decimal = Decimal(0)
    currency: str = "USD"
    cached_price: Decimal | None = None


@dataclass(frozen=True)
class EndpointView:
    """An endpoint. position: from 1, in the order in which models are called. The API key is never shown."""

    id: UUID
    model: str
    address: str
    has_key: bool
    position: int
    timeout_seconds: int
    retries: int
    prompt_price: Decimal
    completion_price: Decimal
    currency: str
    cached_price: Decimal | None
    created_at: datetime | None


def endpoints_list(*, actor: Actor) -> list[EndpointView]:
    """Return the tenant's endpoints in their order. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        return [_make_view(row, number) for number, row in enumerate(_load_rows(actor), start=1)]


def endpoint_get(*, actor: Actor, endpoint_id: UUID) -> EndpointView:
    """Return one endpoint. Raises Forbidden; NotFound."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        return _make_numbered_view(actor, _locate_endpoint(actor, endpoint_id))


def endpoint_create(*, actor: Actor, draft: EndpointDraft) -> EndpointView:
    """Add an endpoint at the end of the order.

    Raises Forbidden; Invalid; Conflict if there are MOST_ENDPOINTS already; KeyUnavailable. Writes: ModelEndpoint,
    AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    _check_draft(draft)
    row = ModelEndpoint(
        id=uuid7(),
        tenant_id=actor.tenant_id,
        model=draft.model.strip(),
        address=draft.address,
        timeout_seconds=draft.timeout_seconds,
        retries=draft.retries,
        prompt_price=draft.prompt_price,
        completion_price=draft.completion_price,
        currency=draft.currency,
        cached_price=draft.cached_price,
    )
    if draft.key:
        place = key_place(row.id)
        row.sealed_key = seal_for(tenant_id=actor.tenant_id, scope=GENERAL, place=place, plaintext=draft.key.encode())
    with acting(actor):
        if len(_load_rows(actor, lock=True)) >= MOST_ENDPOINTS:
            raise Conflict(f"There are {MOST_ENDPOINTS} models already. Remove one first.")
        last = ModelEndpoint.objects.filter(tenant_id=actor.tenant_id).aggregate(last=Max("position"))["last"]
        row.position = 1 if last is None else last + 1
        row.save(force_insert=True)
        _record_change(actor, Verb.MODEL_ENDPOINT_CREATED, row)
        return _make_numbered_view(actor, row)


def endpoint_move(*, actor: Actor, endpoint_id: UUID, position: int) -> EndpointView:
    """Move an endpoint to a position, from 1; a position beyond the end means the end.

    Raises Forbidden; NotFound; Invalid. Writes: ModelEndpoint …, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    if position < 1:
        raise Invalid(errors=[FieldError("position", "counts from 1")])
    with acting(actor):
        row = _locate_endpoint(actor, endpoint_id)
        others = [other for other in _load_rows(actor, lock=True) if other.id != row.id]
        ordered = [*others[: position - 1], row, *others[position - 1 :]]
        for number, endpoint in enumerate(ordered, start=1):
            if endpoint.position != number:
                endpoint.position = number
                endpoint.save(update_fields=["position"])
        _record_change(actor, Verb.MODEL_ENDPOINT_UPDATED, row)
        return _make_numbered_view(actor, row)


def endpoint_remove(*, actor: Actor, endpoint_id: UUID) -> None:
    """Remove a model's endpoint. Raises Forbidden; NotFound. Writes: ModelEndpoint, AuditEntry."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        row = _locate_endpoint(actor, endpoint_id)
        _record_change(actor, Verb.MODEL_ENDPOINT_REMOVED, row)
        row.delete()


def endpoint_model(*, actor: Actor, endpoint_id: UUID) -> PricedModel:
    """Return the model of one endpoint, for a test. Raises Forbidden; NotFound; KeyUnavailable; ProviderUnavailable."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        return _open_model(_locate_endpoint(actor, endpoint_id))


def models_list(actor: Actor, chosen: str = "") -> list[PricedModel]:
    """Return the models to call for an answer, in order: the tenant's, else the installation's; without any, answers
    quote.

    chosen: the model of a conversation, called before the others; EXTRACTIVE for none. One query. Raises
    KeyUnavailable; ProviderUnavailable if an endpoint's address cannot be used.
    """
    if chosen == EXTRACTIVE:
        return []
    with acting(actor):
        found = [_open_model(row) for row in _load_rows(actor)]
    installed = llm()
    if installed is not None:
        found.append(PricedModel(installed))
    return sorted(found, key=lambda model: model.llm.name != chosen) if chosen else found


def model_names(actor: Actor) -> list[str]:
    """Return the distinct names of the models of `models_list`. One query."""
    with acting(actor):
        names = [row.model for row in _load_rows(actor)]
    installed = [settings.MEMOS_LLM.model] if settings.MEMOS_LLM.url else []
    return list(dict.fromkeys([*names, *installed]))


def key_place(endpoint_id: UUID) -> bytes:
    return b"model endpoint" + endpoint_id.bytes


def _load_rows(actor: Actor, *, lock: bool = False) -> list[ModelEndpoint]:
    rows = ModelEndpoint.objects.filter(tenant_id=actor.tenant_id).order_by("position", "id")
    return list(rows.select_for_update() if lock else rows)


def _locate_endpoint(actor: Actor, endpoint_id: UUID) -> ModelEndpoint:
    row = ModelEndpoint.objects.filter(tenant_id=actor.tenant_id, id=endpoint_id).first()
    if row is None:
        raise NotFound
    authorize(actor, Permission.OPERATIONS_MANAGE, Target(OBJECT_TYPE, row.id, row.tenant_id))
    return row


def _open_model(row: ModelEndpoint) -> PricedModel:
    key = row.sealed_key and open_sealed(tenant_id=row.tenant_id, place=key_place(row.id), blob=row.sealed_key)
    model = tenant_llm(
        url=row.address,
        key=key.decode() if key else "",
        model=row.model,
        read_seconds=row.timeout_seconds,
        retries=row.retries,
    )
    return PricedModel(model, Price(row.prompt_price, row.completion_price, row.currency, row.cached_price))


def _make_numbered_view(actor: Actor, row: ModelEndpoint) -> EndpointView:
    ids = [endpoint.id for endpoint in _load_rows(actor)]
    return _make_view(row, ids.index(row.id) + 1)


def _make_view(row: ModelEndpoint, number: int) -> EndpointView:
    return EndpointView(
        id=row.id,
        model=row.model,
        address=row.address,
        has_key=row.sealed_key is not None,
        position=number,
        timeout_seconds=row.timeout_seconds,
        retries=row.retries,
        prompt_price=row.prompt_price,
        completion_price=row.completion_price,
        currency=row.currency,
        cached_price=row.cached_price,
        created_at=row.created_at if isinstance(row.created_at, datetime) else None,
    )


def _record_change(actor: Actor, verb: Verb, row: ModelEndpoint) -> None:
    host = urlsplit(row.address).hostname or ""
    detail = {"model": row.model, "host": host}
    record(actor=actor, verb=verb, object_type=OBJECT_TYPE, object_ids=[row.id], detail=detail)


def _check_draft(draft: EndpointDraft) -> None:
    """Check the draft. Raises Invalid. The host is resolved at each call, as its address may change."""
    faults = []
    name = draft.model.strip()
    if not 1 <= len(name) <= LONGEST_MODEL or not name.isprintable() or name == EXTRACTIVE:
        faults.append(FieldError("model", f"1 to {LONGEST_MODEL} characters, and not “{EXTRACTIVE}”"))
    if not _is_address(draft.address):
        faults.append(FieldError("address", "a whole address, as in https://host/v1"))
    elif refusal := _find_refusal(draft):
        faults.append(FieldError("address", refusal))
    if len(draft.key) > LONGEST_KEY or not (draft.key.isascii() and (not draft.key or draft.key.isprintable())):
        faults.append(FieldError("key", f"at most {LONGEST_KEY} printable ASCII characters"))
    if not 1 <= draft.timeout_seconds <= LONGEST_TIMEOUT:
        faults.append(FieldError("timeout_seconds", f"1 to {LONGEST_TIMEOUT}"))
    if not 0 <= draft.retries <= MOST_RETRIES:
        faults.append(FieldError("retries", f"0 to {MOST_RETRIES}"))
    prices = {name: getattr(draft, name) for name in ("prompt_price", "completion_price", "cached_price")}
    for field_name, price in prices.items():
        if price is None:
            continue
        if not price.is_finite() or not 0 <= price <= HIGHEST_PRICE or price != round(price, DECIMALS):
            faults.append(FieldError(field_name, f"0 to {HIGHEST_PRICE}, at most {DECIMALS} decimals"))
    currency = draft.currency
    if len(currency) != 3 or not (currency.isascii() and currency.isalpha() and currency.isupper()):
        faults.append(FieldError("currency", "three capital letters, as in USD"))
    if faults:
        raise Invalid(errors=faults)


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    usable = parts.scheme in PORTS and bool(parts.hostname) and port != 0
    plain = address.isascii() and address.isprintable() and " " not in address and len(address) <= LONGEST_ADDRESS
    return usable and plain and not parts.username and not parts.password and not parts.fragment and not parts.query


def _find_refusal(draft: EndpointDraft) -> str:
    """Return the reason why the form of this address rules out calls; empty if it does not."""
    parts = urlsplit(draft.address)
    try:
        refuse_plaintext(tls=parts.scheme == "https")
        refuse_private_literal(parts.hostname or "", parts.port or PORTS[parts.scheme])
        tenant_llm(url=draft.address, key="", model=draft.model, read_seconds=1, retries=0)
    except Refused as refusal:
        return str(refusal)
    except ProviderUnavailable as failure:
        return failure.detail
    return ""
