"""What beat asks for every hour: the requests of failed jobs that nobody tried again go."""

from django.db import connection

from governance.database import no_tenant


def jobs_tidy() -> int:
    """Blank what failed jobs of all tenants should have stored, once its time is over; returns how many."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT vault_jobs_tidy()")
        blanked: int = cursor.fetchone()[0]
    return blanked
