"""Deletes old rows every hour, started by beat."""

from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models.functions import Now

from governance.database import no_tenant

KEPT = timedelta(days=7)  # done events stay this long, for whoever asks what happened


def tidy() -> int:
    """Delete old done events, old idempotency keys and ended sessions, of all tenants; returns how many rows went."""
    keys = timedelta(hours=settings.IDEMPOTENCY_HOURS)
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT governance_tidy(make_interval(secs => %s), make_interval(secs => %s))",
            [KEPT.total_seconds(), keys.total_seconds()],
        )
        removed: int = cursor.fetchone()[0]
        ended, _ = Session.objects.filter(expire_date__lt=Now()).delete()
    return removed + ended
