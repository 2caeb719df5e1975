"""Deletion of old rows. Celery beat starts it every hour."""

from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models.functions import Now

from governance.database import no_tenant

DONE_EVENTS_STAY = timedelta(days=7)  # so that a recent event can still be looked up


def tidy() -> int:
    """Delete old processed events, idempotency keys and expired sessions of all tenants. Return the number of rows."""
    keys = timedelta(hours=settings.IDEMPOTENCY_HOURS)
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT governance_tidy(make_interval(secs => %s), make_interval(secs => %s))",
            [DONE_EVENTS_STAY.total_seconds(), keys.total_seconds()],
        )
        removed: int = cursor.fetchone()[0]
        ended, _ = Session.objects.filter(expire_date__lt=Now()).delete()
    return removed + ended
