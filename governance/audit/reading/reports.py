"""Reports of the audit log as CSV."""

import csv
import io
import json

from governance.actor import Actor
from governance.audit.reading.queries import AuditQuery
from governance.audit.reading.selectors import permission_changes
from governance.errors import FieldError, Invalid
from governance.models import AuditEntry
from governance.pages import First

MOST_ROWS = 100_000
COLUMNS = (
    "at",
    "verb",
    "outcome",
    "principal_kind",
    "principal_id",
    "member_id",
    "object_type",
    "object_ids",
    "detail",
)


def changes_csv(*, actor: Actor, query: AuditQuery) -> str:
    """Return every permission change that `query` matches as CSV, oldest first. Raises Forbidden; Invalid (too many
    rows).
    """
    rows = permission_changes(actor=actor, query=query, pages=First(MOST_ROWS + 1))
    if len(rows) > MOST_ROWS:
        raise Invalid(errors=[FieldError("from", f"more than {MOST_ROWS} rows: ask for a shorter time")])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_cells(row) for row in reversed(rows))
    return text.getvalue()


def _cells(row: AuditEntry) -> list[str]:
    return [
        row.at.isoformat(),
        row.verb,
        row.outcome,
        row.principal_kind,
        str(row.principal_id),
        str(row.member_id or ""),
        row.object_type,
        " ".join(map(str, row.object_ids)),
        json.dumps(row.detail, ensure_ascii=False, sort_keys=True),
    ]
