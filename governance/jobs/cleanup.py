"""Deletion of the requests of failed jobs that nobody retried, for all tenants, every hour."""

from django.db import connection

from governance.database import no_tenant


def jobs_tidy() -> int:
    """Delete the expired sealed requests of failed jobs, and return how many."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT governance_jobs_tidy()")
        blanked: int = cursor.fetchone()[0]
    return blanked
