"""The language models of the tenant and the models of this installation, each with a test."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.policies.heavy import heavy_call
from governance.policies.quotas import tokens_check
from governance.vocabulary import Permission
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page, post_page, see_other
from vault.cubes.usage import usage_count
from vault.endpoints.services import (
    EndpointDraft,
    endpoint_create,
    endpoint_get,
    endpoint_model,
    endpoint_move,
    endpoint_remove,
    endpoints_list,
)
from vault.endpoints.usage import usage_of_month
from vault.providers.ports import ChatMessage, ChatRole, Llm, ProviderUnavailable
from vault.providers.registry import embedder, llm

DRAFT = EndpointDraft(model="", address="")  # its defaults are those of the form


class EndpointForm(PageForm):
    """A language model of the tenant to add."""

    model = forms.CharField(label=_("Model"), max_length=100)
    key = forms.CharField(
        label=_("API key"),
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    address = forms.CharField(
        label=_("Address"),
        max_length=500,
        help_text=_(
            "Of an OpenAI-compatible API, over https://. A private network is not called unless the operator allows it."
        ),
        widget=forms.TextInput(attrs={"placeholder": "https://api.example.com/v1", "data-wide": True}),
    )
    timeout_seconds = forms.IntegerField(label=_("Seconds until the next word"), initial=DRAFT.timeout_seconds)
    retries = forms.IntegerField(label=_("Retries"), initial=DRAFT.retries)
    prompt_price = forms.DecimalField(
        label=_("Price of a million tokens read"), required=False, initial=DRAFT.prompt_price
    )
    completion_price = forms.DecimalField(
        label=_("Price of a million tokens written"), required=False, initial=DRAFT.completion_price
    )
    cached_price = forms.DecimalField(
        label=_("Price of a million tokens from the server's cache"),
        required=False,
        help_text=_("Empty: they cost as much as all tokens read."),
    )
    currency = forms.CharField(label=_("Currency of the prices"), max_length=3, initial=DRAFT.currency)

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()

    def draft(self) -> EndpointDraft:
        return EndpointDraft(**{name: value for name, value in self.cleaned_data.items() if value is not None})


@dataclass(frozen=True)
class ModelTest:
    """The result of a test. part: `llm`, `embedder`, or the id of an endpoint; answer: the model's answer, or the
    error.

    milliseconds: the duration of the call.
    """

    part: str
    works: bool
    answer: str
    milliseconds: int


@form_page
def model_settings(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows the configuration; POST tests one of the models, which changes and stores nothing.

    A test counts as one of the tenant's heavy calls, and the language model is called only within the token quota.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    tested = None
    tests = TESTS | {str(endpoint.id): _make_test(actor, endpoint.id) for endpoint in endpoints_list(actor=actor)}
    if request.method == "POST":
        part = request.POST.get("part", "")
        if part not in tests:
            raise Invalid(errors=[FieldError("part", "choose one")])
        if part != "embedder":
            tokens_check(actor, usage_count)
        with heavy_call(actor):
            tested = _run_test(part, tests[part])
    return _draw_page(request, actor, tested=tested)


@post_page
def endpoint_add(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Add a language model of the tenant; a faulty form is shown again with its errors."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    form = EndpointForm(values_of(request))
    if form.made_by(lambda: endpoint_create(actor=actor, draft=form.draft())) is None:
        return _draw_page(request, actor, form=form)
    return see_other(reverse("model_settings"))


@post_page
def endpoint_first(request: HttpRequest, actor: Actor, endpoint_id: UUID) -> HttpResponseBase:
    """Move this language model one place earlier in the order."""
    found = endpoint_get(actor=actor, endpoint_id=endpoint_id)
    endpoint_move(actor=actor, endpoint_id=endpoint_id, position=max(1, found.position - 1))
    return see_other(reverse("model_settings"))


@post_page
def endpoint_end(request: HttpRequest, actor: Actor, endpoint_id: UUID) -> HttpResponseBase:
    """Remove a language model."""
    endpoint_remove(actor=actor, endpoint_id=endpoint_id)
    return see_other(reverse("model_settings"))


def _draw_page(
    request: HttpRequest, actor: Actor, *, tested: ModelTest | None = None, form: EndpointForm | None = None
) -> HttpResponseBase:
    form = form or EndpointForm()
    context = {
        "embedder": _name_of_embedder(),
        "llm": _name_of_llm(),
        "endpoints": endpoints_list(actor=actor),
        "usage": usage_of_month(actor=actor),
        "tested": tested,
        "form": form,
    }
    return draw(request, "vault/model_settings.html", context, status=form.status)


def _run_test(part: str, test: Callable[[], str]) -> ModelTest:
    started = time.perf_counter()
    try:
        answer, works = test(), True
    except ProviderUnavailable as failure:
        answer, works = failure.detail, False
    return ModelTest(part, works, answer, round((time.perf_counter() - started) * 1000))


def _test_embedder() -> str:
    return str(embedder().embed(["A test of the embedder."]).shape[1])


def _test_llm() -> str:
    model = llm()
    if model is None:
        raise ProviderUnavailable("MEMOS_LLM_URL is not set")
    return _ask_readiness(model)


def _make_test(actor: Actor, endpoint_id: UUID) -> Callable[[], str]:
    return lambda: _ask_readiness(endpoint_model(actor=actor, endpoint_id=endpoint_id).llm)


def _ask_readiness(model: Llm) -> str:
    return model.complete([ChatMessage(ChatRole.USER, "Answer with the word: ready")]).text[:200]


def _name_of_embedder() -> str:
    try:
        return embedder().name
    except ProviderUnavailable as failure:
        return failure.detail


def _name_of_llm() -> str:
    try:
        model = llm()
    except ProviderUnavailable as failure:
        return failure.detail
    return model.name if model else ""


TESTS: dict[str, Callable[[], str]] = {"embedder": _test_embedder, "llm": _test_llm}
