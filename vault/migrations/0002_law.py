"""Row-level security, composite keys and rights of the vault's tables."""

from django.db import migrations
from django.db.migrations.operations import RunSQL

from governance.tenancy_sql import reference, tenant_table

DESCRIBED = [
    ("namespace_id", "vault_namespace"),
    ("persona_id", "governance_persona"),
    ("subject_id", "governance_datasubject"),
    ("owner_id", "governance_member"),
]
ALL = "SELECT, INSERT, UPDATE, DELETE"

# A version may be deleted with its cube, or have its words blanked by a redaction; nothing else of it changes.
VERSION_IS_IMMUTABLE = """
CREATE FUNCTION vault_version_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.sealed <> ''::bytea OR NEW.terms <> '{}'
     OR to_jsonb(NEW) - 'sealed' - 'terms' IS DISTINCT FROM to_jsonb(OLD) - 'sealed' - 'terms' THEN
    RAISE EXCEPTION 'a version never changes' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$
"""


def keyed_by_cube(table: str) -> RunSQL:
    """`tenant_table` for a table whose key is composite already."""
    policy = "tenant_id = NULLIF(current_setting('app.tenant', true), '')::uuid"
    return RunSQL(
        [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY tenant_only ON {table} USING ({policy}) WITH CHECK ({policy})",
            f"GRANT {ALL} ON {table} TO memos_app",
        ],
        RunSQL.noop,
    )


class Migration(migrations.Migration):
    dependencies = [("vault", "0001_initial"), ("governance", "0002_law")]

    operations = [
        tenant_table("vault_namespace", references=[("owner_id", "governance_member")]),
        tenant_table("vault_cube", rights=ALL, references=DESCRIBED),
        tenant_table("vault_cubeversion", rights=ALL, references=DESCRIBED),
        tenant_table("vault_cubelink", rights=ALL),
        keyed_by_cube("vault_cubeuse"),
        keyed_by_cube("vault_embedding"),
        keyed_by_cube("vault_posting"),
        keyed_by_cube("vault_namespacesize"),
        tenant_table("vault_job", references=[("member_id", "governance_member")]),
        tenant_table(
            "vault_conversation",
            references=[
                ("member_id", "governance_member"),
                ("persona_id", "governance_persona"),
                ("agent_persona_id", "governance_persona"),
            ],
        ),
        tenant_table("vault_turn", rights=ALL, references=[("conversation_id", "vault_conversation")]),
        RunSQL(
            [
                reference("vault_cubeversion", "cube_id", "vault_cube", on_delete="CASCADE"),
                reference("vault_cubelink", "source_id", "vault_cube", on_delete="CASCADE"),
                reference("vault_cubelink", "target_id", "vault_cube", on_delete="CASCADE"),
                reference("vault_cubeuse", "cube_id", "vault_cube", on_delete="CASCADE"),
                reference("vault_embedding", "cube_id", "vault_cube", on_delete="CASCADE"),
                reference("vault_turn", "question_id", "vault_cube", on_delete="SET NULL (question_id)"),
                reference("vault_turn", "answer_id", "vault_cube", on_delete="SET NULL (answer_id)"),
                reference("vault_namespacesize", "namespace_id", "vault_namespace", on_delete="CASCADE"),
                # Vectors of the default embedder; those of others are compared one by one (docs/decisions/0008).
                "CREATE INDEX embedding_nearest ON vault_embedding USING hnsw "
                "((vector::halfvec(256)) halfvec_cosine_ops) WHERE model = 'wordllama/l2-supercat-256'",
                # The key carries what BM25 needs, so that a search reads the index alone.
                "ALTER TABLE vault_posting DROP CONSTRAINT vault_posting_pkey",
                "ALTER TABLE vault_posting ADD PRIMARY KEY (tenant_id, term, cube_id) "
                "INCLUDE (namespace_id, frequency, length, session_token, position)",
                "ALTER TABLE vault_posting SET (autovacuum_vacuum_insert_scale_factor = 0.02)",
                VERSION_IS_IMMUTABLE,
                "CREATE TRIGGER version_is_immutable BEFORE UPDATE ON vault_cubeversion "
                "FOR EACH ROW EXECUTE FUNCTION vault_version_is_immutable()",
            ],
            RunSQL.noop,
        ),
    ]
