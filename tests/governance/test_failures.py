"""Tests of database errors: the code decides first, because a deadlock is no outage."""

import psycopg
import pytest
from django.db import DatabaseError, Error, IntegrityError, InterfaceError, OperationalError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.test import RequestFactory
from django_htmx.middleware import HtmxMiddleware

from governance.errors import Conflict, DomainError, Unavailable
from governance.failures import database_failure
from governance.web.pages import answer_errors

CASES: list[tuple[type[Error], psycopg.Error | None, type[DomainError] | None]] = [
    (OperationalError, psycopg.errors.DeadlockDetected(), Conflict),
    (OperationalError, psycopg.errors.SerializationFailure(), Conflict),
    (IntegrityError, psycopg.errors.UniqueViolation(), Conflict),
    (IntegrityError, psycopg.errors.ForeignKeyViolation(), Conflict),
    (OperationalError, psycopg.errors.AdminShutdown(), Unavailable),
    (OperationalError, None, Unavailable),
    (InterfaceError, None, Unavailable),
    (IntegrityError, psycopg.errors.CheckViolation(), None),
    (DatabaseError, None, None),
]


def _raise(kind: type[Error], cause: psycopg.Error | None) -> Error:
    with pytest.raises(kind) as caught:
        raise kind("host 10.0.0.7") from cause
    return caught.value


@pytest.mark.parametrize(("kind", "cause", "told"), CASES)
def test_each_failure_has_its_word(
    kind: type[Error], cause: psycopg.Error | None, told: type[DomainError] | None
) -> None:
    failure = database_failure(_raise(kind, cause))
    assert type(failure) is (told or type(None))
    assert failure is None or "10.0.0.7" not in failure.detail


@pytest.mark.parametrize(("kind", "cause", "told"), CASES)
def test_a_page_says_the_same(kind: type[Error], cause: psycopg.Error | None, told: type[DomainError] | None) -> None:
    @answer_errors
    def view(request: HttpRequest) -> HttpResponseBase:
        raise kind("host 10.0.0.7") from cause

    request = RequestFactory().get("/chat/")
    HtmxMiddleware(lambda asked: None)(request)  # type: ignore[arg-type]
    if told is None:
        with pytest.raises(kind):
            view(request)
    else:
        assert view(request).status_code == told.status
