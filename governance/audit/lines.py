"""The one form in which an entry is hashed: the JSON that PostgreSQL writes of it, all columns, in the order below.

Compact, UTF-8, times with microseconds in UTC, bytes in hexadecimal, NULL as null, JSON columns as jsonb is printed
(its own order of keys). The database writes it, since Python would take ten times as long; an export holds these very
bytes. docs/audit.md describes it for whoever checks it without us.
"""

from governance.audit.verifier import COLUMNS

_BYTES = frozenset({"before_hash", "after_hash"})


def _column(name: str) -> str:
    return f"encode(entry.{name}, 'hex') AS {name}" if name in _BYTES else f"entry.{name}"


LINE = f"(SELECT {', '.join(map(_column, COLUMNS))}) AS line"
"""To be joined laterally to `governance_auditentry AS entry`; `row_to_json(line)::text` is then the line."""

IN_UTC = "SELECT set_config('timezone', 'UTC', true)"
"""Before lines are read: times are written in the session's zone."""
