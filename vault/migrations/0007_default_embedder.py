"""An index for the vectors of the new default embedder; the one of the former is named as those of any other model."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("vault", "0006_pack_excerpts")]

    operations = [
        migrations.RunSQL(
            [
                "ALTER INDEX embedding_nearest RENAME TO embedding_nearest_97d18c695534",
                "CREATE INDEX embedding_nearest ON vault_embedding USING hnsw "
                "((vector::halfvec(512)) halfvec_cosine_ops) WHERE model = 'universal-sentence-encoder/multilingual-3'",
            ]
        )
    ]
