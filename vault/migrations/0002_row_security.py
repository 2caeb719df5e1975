"""Row-level security of the tables of the vault, the keys between them, rights, and how PostgreSQL stores them."""

from django.db import migrations

from governance.tenancy_sql import (
    ADD,
    ALL,
    CURRENT_TENANT,
    derived_table,
    grant_table,
    reference,
    router_access,
    run,
    tenant_table,
    without_statistics,
)

ADD_DELETE = "SELECT, INSERT, DELETE"
CUBE = {"cube_id": "vault_cube"}
MEMBER = {"member_id": "governance_member"}
NAMESPACE = {"namespace_id": "vault_namespace"}
PERSONA = {"persona_id": "governance_persona"}
OWNER = {"owner_id": "governance_member"}
DESCRIBED = NAMESPACE | PERSONA | {"subject_id": "governance_datasubject"} | OWNER
VERSION = {"version_id": "vault_cubeversion"}

MEMORIES = [
    tenant_table("vault_namespace", references=OWNER),
    grant_table("vault_namespacegrant", of="vault_namespace"),
    tenant_table("vault_cube", ALL, DESCRIBED),
    grant_table("vault_cubegrant", of="vault_cube"),
    tenant_table("vault_cubeversion", ALL, DESCRIBED, CUBE),
    tenant_table("vault_cubelink", ALL, parents={"source_id": "vault_cube", "target_id": "vault_cube"}),
    tenant_table("vault_cubesource", ALL, parents=CUBE),
    derived_table("vault_cubeuse", CUBE),
    tenant_table("vault_statetransition", ADD, parents=CUBE),
    tenant_table("vault_pastdeletion", ADD, parents=CUBE),
    tenant_table("vault_review", ALL, parents=CUBE | VERSION | {"other_id": "vault_cube"}),
    tenant_table("vault_piifinding", ALL, parents=CUBE | VERSION),
    tenant_table("vault_hold", ADD, {"maker_id": "governance_member"}),
    tenant_table("vault_holdcube", ADD, {"hold_id": "vault_hold"}),
    tenant_table("vault_holdreleaseapproval", ADD, {"hold_id": "vault_hold"} | MEMBER),
]
INDEX = [
    derived_table("vault_posting"),
    derived_table("vault_archivedposting"),
    derived_table("vault_namespacesize", NAMESPACE),
    derived_table("vault_embedding", CUBE),
    derived_table("vault_embeddingmodel"),
]
CHAT = [
    tenant_table("vault_conversation", references=MEMBER | PERSONA | {"agent_persona_id": "governance_persona"}),
    tenant_table("vault_turn", ALL, {"conversation_id": "vault_conversation"}),
    [reference("vault_turn", column, "vault_cube", f"SET NULL ({column})") for column in ("question_id", "answer_id")],
    tenant_table("vault_mount", ADD_DELETE, NAMESPACE | PERSONA | MEMBER, {"conversation_id": "vault_conversation"}),
    tenant_table("vault_summary", ALL, parents=NAMESPACE | {"conversation_id": "vault_conversation"}),
    tenant_table("vault_modelendpoint", ALL),
]
LAYERS = [
    tenant_table("vault_layersettings", references=PERSONA),
    tenant_table("vault_stream", references=PERSONA | {"agent_persona_id": "governance_persona"}),
    tenant_table("vault_segment", references=PERSONA),
    tenant_table(
        "vault_page",
        references={"stream_id": "vault_stream", "segment_id": "vault_segment"},
        parents={"query_id": "vault_cube", "response_id": "vault_cube"},
    ),
    tenant_table("vault_layerentry", references=PERSONA, parents=CUBE),
    tenant_table("vault_trait", references=PERSONA),
    tenant_table("vault_traitevidence", references={"trait_id": "vault_trait"}, parents={"page_id": "vault_page"}),
]
# A sub-select is evaluated once in a statement, and not for each row.
READER = f"(SELECT {CURRENT_TENANT})"
STORE = [
    tenant_table("vault_pack", ALL, MEMBER),
    tenant_table("vault_packversion", ALL, {"pack_id": "vault_pack"} | MEMBER),
    tenant_table(
        "vault_publication",
        references={
            "pack_id": "vault_pack",
            "version_id": "vault_packversion",
            "waiting_id": "vault_packversion",
            "requested_by_id": "governance_member",
            "approved_by_id": "governance_member",
        },
    ),
    tenant_table(
        "vault_listing",
        ALL,
        {"id": "vault_publication", "pack_id": "vault_pack", "version_id": "vault_packversion"},
    ),
    [
        "CREATE POLICY offered ON vault_listing FOR SELECT TO memos_app USING (is_offered "
        f"AND {READER} IS NOT NULL AND (visibility = 'installation' OR {READER} = ANY (tenants)))"
    ],
    tenant_table("vault_subscription", references=NAMESPACE | MEMBER),
    # Who purges a memory need not know that a pack brought it.
    tenant_table("vault_packmemory", ALL, {"subscription_id": "vault_subscription"}, CUBE),
    tenant_table("vault_contract", references={"publication_id": "vault_publication"}),
    tenant_table("vault_packread", f"{ADD}, UPDATE (is_sent)"),
    tenant_table("vault_packrating", ALL, MEMBER),
    tenant_table("vault_packreport", references=MEMBER),
    tenant_table("vault_packproposal", references=MEMBER),
]
WORK = [
    tenant_table("vault_actionitem", ADD, {"job_id": "governance_job"}),
    tenant_table("vault_dailycount", ADD_DELETE, NAMESPACE | MEMBER),
    tenant_table("vault_savedview", ADD_DELETE, MEMBER),
    tenant_table("vault_syncpeer", ALL, {"last_job_id": "governance_job"}),
    tenant_table("vault_synclink", ALL, parents={"peer_id": "vault_syncpeer"}),
    tenant_table("vault_upload", ADD_DELETE, MEMBER),
]
ROUTER = [
    router_access("vault_embeddingmodel", "tenant_id, model"),
    router_access("vault_packreport", "tenant_id, id, decided_at"),
]
# The key carries what BM25 (`entry`) and filters need, so that a search reads the index alone.
INCLUDED = "namespace_id, frequency, entry, layer, type, persona_id, happened_at"
STORAGE = [
    *(
        statement
        for table in ("vault_posting", "vault_archivedposting")
        for statement in (
            f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
            f"ALTER TABLE {table} ADD PRIMARY KEY (tenant_id, term, cube_id) INCLUDE ({INCLUDED})",
            f"ALTER TABLE {table} SET (autovacuum_vacuum_insert_scale_factor = 0.02)",
        )
    ),
    # Vectors of the default embedder; those of others are compared one by one (docs/decisions/0008).
    "CREATE INDEX embedding_nearest ON vault_embedding USING hnsw "
    "((vector::halfvec(256)) halfvec_cosine_ops) WHERE model = 'wordllama/l2-supercat-256'",
]
# A new tenant's first thousand memories do not upset plans of look-ups; and PostgreSQL's statistics hold no copies of
# vectors and sealed bytes, which a purge would not reach.
STATISTICS = [
    without_statistics("vault_cube", "tenant_id", "namespace_id", "content_hash"),
    without_statistics("vault_cubeversion", "tenant_id", "namespace_id", "sealed", "hash", "previous_hash"),
    without_statistics("vault_cubelink", "tenant_id"),
    without_statistics("vault_cubeuse", "tenant_id"),
    without_statistics("vault_posting", "tenant_id", "namespace_id"),
    without_statistics(
        "vault_embedding", "tenant_id", "namespace_id", "vector", "layer", "type", "persona_id", "happened_at"
    ),
    without_statistics("vault_page", "tenant_id", "stream_id", "segment_id", "query_id", "response_id", "layer"),
    without_statistics("vault_segment", "tenant_id", "persona_id"),
]


class Migration(migrations.Migration):
    dependencies = [("governance", "0003_row_security"), ("vault", "0001_initial")]

    operations = [run(*MEMORIES, *INDEX, *CHAT, *LAYERS, *STORE, *WORK, *ROUTER, STORAGE, *STATISTICS)]
