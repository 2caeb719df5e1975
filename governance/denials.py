"""Denials are told to the audit log by whoever tells them to the caller: pages, the API, streams and jobs."""

from django.db import Error

from governance.actor import Actor
from governance.audit.services import record_denial
from governance.errors import DomainError, Forbidden, Unavailable
from governance.failures import database_failure


def denial_told(*, actor: Actor, denial: Forbidden, path: str) -> DomainError:
    """`denial` once it is recorded; where that fails, the failure: then nothing can be answered now."""
    try:
        record_denial(actor=actor, denial=denial, path=path)
    except Unavailable as failure:
        return failure
    except Error as error:
        return database_failure(error) or Unavailable()
    return denial
