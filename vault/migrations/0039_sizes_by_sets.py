"""The sizes of namespaces follow a change of many memories in linear time: by sets, no longer by a join.

The plan of the join was made for the first, small changes: of 20,000 memories it compared each with each.
"""

from importlib import import_module

from django.db import migrations

FORMER = import_module("vault.migrations.0019_index_eligibility")
NAME = "vault_sizes_follow_a_change"
COLUMNS = "tenant_id, id, namespace_id, term_count, expires_at, created_at"
COUNTED = f"SELECT {COLUMNS} FROM {{rows}} WHERE deleted_at IS NULL AND is_indexed"
BEFORE, AFTER = COUNTED.format(rows="former"), COUNTED.format(rows="present")
CHANGED = f"""
    SELECT -1 AS sign, one.* FROM ({BEFORE} EXCEPT {AFTER}) AS one
    UNION ALL SELECT 1, one.* FROM ({AFTER} EXCEPT {BEFORE}) AS one"""


class Migration(migrations.Migration):
    dependencies = [("vault", "0038_fingerprints")]

    operations = [
        migrations.RunSQL(
            FORMER.FOLLOW.format(name=NAME, changed=CHANGED), FORMER.FOLLOW.format(name=NAME, changed=FORMER.INSTEAD)
        )
    ]
