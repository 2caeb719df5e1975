"""Tests of error pages."""

from collections.abc import Callable

import psycopg
import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django_htmx.middleware import HtmxMiddleware

from governance.errors import AuditUnavailable, DomainError, Forbidden, Invalid, TooLarge, Unavailable
from governance.web.explanations import EXPLANATIONS
from governance.web.pages import refusal
from tests.factories import World
from tests.governance.web.visitors import signed_in
from vault.providers.ports import ProviderUnavailable


def test_an_unknown_address_is_a_page_with_its_request_id(world: World) -> None:
    response = Client().get("/no/such/page/", headers={"X-Request-ID": "request-0815"})
    assert response.status_code == 404
    assert "request-0815" in response.content.decode()


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (Invalid(), 422),
        (Forbidden("No."), 403),
        (TooLarge(), 413),
        (DomainError(), 500),
        (Unavailable(), 503),
        (AuditUnavailable(), 503),
    ],
)
def test_each_failure_is_a_page_in_words(failure: DomainError, status: int) -> None:
    response = HtmxMiddleware(lambda request: refusal(request, failure))(RequestFactory().get("/chat/"))
    assert isinstance(response, HttpResponse)
    assert response.status_code == status
    assert str(EXPLANATIONS[failure.code].title) in response.content.decode()
    assert ("Retry-After" in response) == (status == 503)


def test_every_error_has_its_words() -> None:
    def below(kind: type[DomainError]) -> set[str]:
        return {kind.code}.union(*(below(each) for each in kind.__subclasses__()))

    assert ProviderUnavailable.code in below(DomainError)  # the product's own are in the tree too
    assert below(DomainError) == set(EXPLANATIONS)


def test_a_script_gets_json_and_a_pane_gets_a_part(world: World) -> None:
    client = signed_in(world.alice)
    nowhere = "/memories/019f0000-0000-7000-8000-000000000000/"
    assert client.get(nowhere, headers={"Accept": "text/event-stream"}).json()["code"] == "not_found"
    part = client.get(nowhere, headers={"HX-Request": "true"})
    assert part.status_code == 404
    assert "<html" not in part.content.decode()
    assert "HX-Request" in part["Vary"]


def test_a_refused_page_is_in_the_audit_log(world: World, superuser: Callable[[], psycopg.Connection]) -> None:
    assert signed_in(world.ada).get("/chat/").status_code == 403
    rows = superuser().execute(
        "SELECT principal_id, outcome, detail->>'path' FROM governance_auditentry WHERE verb = 'access.denied'"
    )
    assert rows.fetchall() == [(world.ada.member.id, "denied", "/chat/")]


def test_unwritable_audit_log_is_answered_503_with_its_reason(
    world: World, superuser: Callable[[], psycopg.Connection]
) -> None:
    client = signed_in(world.alice)
    superuser().execute("ALTER TABLE governance_auditentry RENAME TO gone")
    response = client.get("/chat/")
    assert response.status_code == 503
    assert "The audit log cannot be written." in response.content.decode()
