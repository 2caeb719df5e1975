"""Hourly task: delete sessions and reset links that ended a month ago."""

from django.db import connection

from governance.database import no_tenant


def accounts_tidy() -> int:
    """Delete ended sessions and reset links of all persons; return the number of deleted rows."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT governance_accounts_tidy()")
        removed: int = cursor.fetchone()[0]
    return removed
