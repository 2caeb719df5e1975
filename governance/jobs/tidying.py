"""Hourly, for all tenants: the requests of failed jobs that nobody tried again go."""

from django.db import connection

from governance.database import no_tenant


def jobs_tidy() -> int:
    """Blank the sealed requests of failed jobs whose time is over; returns how many."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT governance_jobs_tidy()")
        blanked: int = cursor.fetchone()[0]
    return blanked
