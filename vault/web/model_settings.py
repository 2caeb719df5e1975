"""The language model and the embedder of this installation, each with a test."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.policies.heavy import heavy_call
from governance.policies.quotas import tokens_check
from governance.vocabulary import Permission
from governance.web.pages import draw, page
from vault.cubes.usage import usage_count
from vault.providers.ports import ChatMessage, ChatRole, ProviderUnavailable
from vault.providers.registry import embedder, llm


@dataclass(frozen=True)
class ModelTest:
    """part: `llm` or `embedder`. answer: of the model, or what is wrong; milliseconds: until then."""

    part: str
    works: bool
    answer: str
    milliseconds: int


@require_http_methods(["GET", "HEAD", "POST"])
@page
def model_settings(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows what is configured; POST asks one of the two, which changes and stores nothing.

    A test takes one of the tenant's heavy calls, and the language model is asked only within the quota of tokens.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    tested = None
    if request.method == "POST":
        part = request.POST.get("part", "")
        if part not in TESTS:
            raise Invalid(errors=[FieldError("part", "choose one")])
        if part == "llm":
            tokens_check(actor, usage_count)
        with heavy_call(actor):
            tested = _tested(part, TESTS[part])
    context = {"embedder": _name_of_embedder(), "llm": _name_of_llm(), "tested": tested}
    return draw(request, "vault/model_settings.html", context)


def _tested(part: str, test: Callable[[], str]) -> ModelTest:
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
