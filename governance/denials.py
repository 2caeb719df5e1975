"""Denials in the audit log: pages, the API, streams and jobs record each denial that they answer with."""

from django.db import Error

from governance.actor import Actor
from governance.audit.services import record_denial
from governance.errors import DomainError, Forbidden, Unavailable
from governance.failures import database_failure


def record_and_return_denial(*, actor: Actor, denial: Forbidden, path: str) -> DomainError:
    """Record `denial` and return it; if recording fails, return that failure instead."""
    try:
        record_denial(actor=actor, denial=denial, path=path)
    except Unavailable as failure:
        return failure
    except Error as error:
        return database_failure(error) or Unavailable()
    return denial
