"""Messages in which the reader found nothing to keep are marked, so that lists and searches leave them out."""

from django.db import migrations, models
from django.db.migrations.operations import RunSQL

READ_BY = "'patterns/1', 'model/1'"
# Row security holds for the owner, too.
MARK = [
    "ALTER TABLE vault_cube NO FORCE ROW LEVEL SECURITY",
    "ALTER TABLE vault_cubesource NO FORCE ROW LEVEL SECURITY",
    "ALTER TABLE vault_cube DISABLE TRIGGER USER",
    f"""UPDATE vault_cube AS cube SET is_dialogue_only = true
    WHERE cube.semantic_type = 'dialogue' AND (cube.reader IN ({READ_BY}) OR cube.source = 'chat') AND NOT EXISTS (
      SELECT 1 FROM vault_cubesource AS source
      WHERE source.tenant_id = cube.tenant_id AND source.source_id = cube.id AND source.kind = 'extract')""",
    "ALTER TABLE vault_cube ENABLE TRIGGER USER",
    "ALTER TABLE vault_cubesource FORCE ROW LEVEL SECURITY",
    "ALTER TABLE vault_cube FORCE ROW LEVEL SECURITY",
]


class Migration(migrations.Migration):
    dependencies = [("vault", "0061_uploads")]

    operations = [
        migrations.AddField("cube", "is_dialogue_only", models.BooleanField(default=False, db_default=False)),
        RunSQL([*MARK], RunSQL.noop),
    ]
