from django.db import migrations


class Migration(migrations.Migration):
    """Renames three models; their tables keep their names."""

    dependencies = [("vault", "0022_state_transitions")]

    operations = [
        migrations.AlterModelTable(name="packedword", table="vault_packedword"),
        migrations.AlterModelTable(name="packedpostings", table="vault_packedpostings"),
        migrations.AlterModelTable(name="packing", table="vault_packing"),
        migrations.RenameModel(old_name="PackedWord", new_name="CompactedTerm"),
        migrations.RenameModel(old_name="PackedPostings", new_name="CompactedPostings"),
        migrations.RenameModel(old_name="Packing", new_name="Compaction"),
    ]
