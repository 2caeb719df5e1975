"""The one form in which an entry is hashed: JSON that PostgreSQL writes of it, all columns, in the order of COLUMNS.

Compact, UTF-8, times with microseconds in UTC, bytes in hexadecimal, NULL as null, JSON columns as jsonb is printed
(its own order of keys): what `row_to_json` writes, in three quarters of its time, since that asks anew for each value
how to write its type. Python would take ten times as long. An export holds these very bytes. docs/audit.md describes
the form for whoever checks it without us.
"""

from governance.audit.verifier import COLUMNS

_UUIDS = frozenset({"id", "tenant_id", "principal_id"})
_FORMS = {
    "member_id": "coalesce('\"' || entry.member_id::text || '\"', 'null')",
    "object_ids": "array_to_json(entry.object_ids)",
    "version": "coalesce(entry.version::text, 'null')",
    "before_hash": "coalesce('\"' || encode(entry.before_hash, 'hex') || '\"', 'null')",
    "after_hash": "coalesce('\"' || encode(entry.after_hash, 'hex') || '\"', 'null')",
    "detail": "entry.detail",
    "context": "entry.context",
}


def _column(name: str) -> str:
    value = f"'\"', entry.{name}, '\"'" if name in _UUIDS else _FORMS.get(name, f"to_json(entry.{name})")
    return f"""'"{name}":', {value}"""


LINE = "concat('{', " + ", ',', ".join(map(_column, COLUMNS)) + ", '}')"
"""The line of a row of `governance_auditentry AS entry`, as text."""

IN_UTC = "SELECT set_config('timezone', 'UTC', true)"
"""Before lines are read: times are written in the session's zone."""
