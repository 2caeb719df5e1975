"""What beat asks for every hour: sessions and reset links that ended a month ago go."""

from django.db import connection

from governance.database import no_tenant


def accounts_tidy() -> int:
    """Of all persons; returns how many rows went."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT governance_accounts_tidy()")
        removed: int = cursor.fetchone()[0]
    return removed
