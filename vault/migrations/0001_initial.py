"""The tables of the vault."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from governance.tables import (
    OBJECT_PERMISSIONS,
    CreateTables,
    choice,
    composite_key,
    grant_model,
    table,
    tenant,
    tenant_key,
    tenant_model,
)

STATES = ("generated", "activated", "merged", "archived", "expired")
REVIEW_STATUSES = ("open", "accepted", "rejected", "superseded")

DESCRIBED = {
    "namespace": tenant_key("vault.namespace"),
    "persona": tenant_key("governance.persona", null=True),
    "subject": tenant_key("governance.datasubject", null=True),
    "owner": tenant_key("governance.member", null=True),
    "access_level": choice("private", "shared", "read_only", max_length=10),
    "semantic_type": choice(
        "fact",
        "preference",
        "event",
        "goal",
        "profile",
        "skill",
        "style",
        "insight",
        "summary",
        "tool_trace",
        "dialogue",
        "document",
        max_length=12,
    ),
    "sensitivity": choice("public", "internal", "confidential", "restricted", max_length=12),
    "tags": ArrayField(models.CharField(max_length=100), default=list),
    "importance": models.FloatField(default=0.5),
    "priority": models.FloatField(default=0.0),
    "event_time": models.DateTimeField(null=True),
    "valid_from": models.DateTimeField(null=True),
    "valid_to": models.DateTimeField(null=True),
    "expires_at": models.DateTimeField(null=True),
}
MEMORIES = [
    tenant_model(
        "Namespace",
        {
            "permissions": OBJECT_PERMISSIONS,
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "path"], name="namespace_path_is_unique"),
                models.CheckConstraint(
                    condition=~models.Q(kind="private") | models.Q(owner__isnull=False),
                    name="private_namespace_has_an_owner",
                ),
            ],
        },
        path=models.CharField(max_length=200),
        kind=choice("private", "expert", "shared", "context_pool", "pipeline_cache", max_length=20),
        read_only=models.BooleanField(default=False),
        quota=models.PositiveIntegerField(null=True),
        session_token=models.BigIntegerField(null=True),
        ended_at=models.DateTimeField(null=True),
        is_mounted=models.BooleanField(default=False, db_default=False),
        owner=tenant_key("governance.member", null=True),
    ),
    grant_model("NamespaceGrant", "vault.namespace"),
    tenant_model(
        "Cube",
        {
            "permissions": OBJECT_PERMISSIONS,
            "indexes": [
                models.Index(fields=["tenant", "-id"], name="cube_newest_first"),
                models.Index(fields=["tenant", "namespace", "-id"], name="cube_by_namespace"),
                models.Index(fields=["tenant", "namespace", "content_hash"], name="cube_by_content"),
                models.Index(fields=["tenant", "session_token", "position"], name="cube_by_session"),
                models.Index(fields=["tenant", "subject"], condition=~models.Q(subject=None), name="cube_by_subject"),
                models.Index(
                    models.F("tenant"),
                    models.F("namespace"),
                    models.Case(models.When(event_time=None, then="created_at"), default="event_time"),
                    condition=models.Q(deleted_at=None),
                    name="cube_by_time",
                ),
                models.Index(
                    fields=["tenant", "expires_at"],
                    condition=models.Q(expires_at__isnull=False, is_indexed=True),
                    name="cube_indexed_by_expiry",
                ),
                models.Index(
                    fields=["tenant", "-id"], condition=models.Q(deleted_at__isnull=False), name="cube_in_trash"
                ),
            ],
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(importance__gte=0, importance__lte=1), name="importance_is_between_0_and_1"
                ),
                models.CheckConstraint(
                    condition=models.Q(priority__gte=0, priority__lte=1), name="priority_is_between_0_and_1"
                ),
                models.CheckConstraint(
                    condition=models.Q(valid_from=None)
                    | models.Q(valid_to=None)
                    | models.Q(valid_to__gt=models.F("valid_from")),
                    name="validity_ends_after_it_begins",
                ),
            ],
        },
        **DESCRIBED,
        type=choice("plaintext", "activation", "parameter", max_length=12),
        layer=choice("short_term", "mid_term", "long_term", max_length=12),
        modality=choice("text", "image", "audio", "video", "tool_call", "document", max_length=12),
        language=models.CharField(max_length=8),
        state=choice(*STATES, max_length=12),
        source=choice("chat", "api", "import", "pack", "system", max_length=10),
        reader=models.CharField(max_length=60),
        trust=models.FloatField(default=0.5),
        session_token=models.BigIntegerField(null=True),
        position=models.PositiveIntegerField(null=True),
        said_at=models.DateTimeField(null=True),
        speaker_marks=ArrayField(models.BigIntegerField(), default=list),
        entity_marks=ArrayField(models.BigIntegerField(), default=list),
        mentions_time=models.BooleanField(default=False),
        asks=models.FloatField(default=0.0),
        superseded_by=models.UUIDField(null=True),
        suspended_expiry=models.DateTimeField(null=True),
        expiry_policy=models.UUIDField(null=True),
        retention_class=models.CharField(max_length=40, blank=True, default=""),
        purpose_tags=ArrayField(models.CharField(max_length=100), default=list),
        content_hash=models.BinaryField(max_length=32),
        token_count=models.PositiveIntegerField(),
        term_count=models.PositiveIntegerField(),
        version=models.PositiveIntegerField(default=1),
        updated_at=models.DateTimeField(db_default=Now()),
        deleted_at=models.DateTimeField(null=True),
        has_sources=models.BooleanField(default=False),
        is_indexed=models.BooleanField(default=True, db_default=True),
        is_quarantined=models.BooleanField(default=False, db_default=False),
        is_cold=models.BooleanField(default=False, db_default=False),
        is_dialogue_only=models.BooleanField(default=False, db_default=False),
    ),
    tenant_model(
        "PastDeletion",
        {"indexes": [models.Index(fields=["tenant", "cube"], name="past_deletion_by_cube")]},
        cube=tenant_key("vault.cube"),
        deleted_at=models.DateTimeField(),
    ),
    grant_model("CubeGrant", "vault.cube"),
    tenant_model(
        "CubeVersion",
        {
            "indexes": [
                models.Index(fields=["tenant", "subject"], condition=~models.Q(subject=None), name="version_by_subject")
            ],
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "cube", "number"], name="version_number_is_unique")
            ],
        },
        **DESCRIBED,
        cube=tenant_key("vault.cube"),
        number=models.PositiveIntegerField(),
        sealed=models.BinaryField(),
        terms=ArrayField(models.BigIntegerField(), default=list),
        principal_kind=models.CharField(max_length=10),
        principal_id=models.UUIDField(),
        reason=models.CharField(max_length=500, blank=True, default=""),
        previous_hash=models.BinaryField(max_length=32, null=True),
        hash=models.BinaryField(max_length=32),
    ),
    table(
        "CubeUse",
        pk=composite_key("tenant_id", "cube_id"),
        tenant=tenant(),
        cube=tenant_key("vault.cube"),
        access_count=models.PositiveIntegerField(default=0),
        last_accessed_at=models.DateTimeField(null=True),
        heat=models.FloatField(default=0.0),
        fingerprint=HalfVectorField(null=True),
        fingerprint_model=models.CharField(max_length=100, blank=True, default="", db_default=""),
        fingerprint_count=models.PositiveIntegerField(default=0, db_default=0),
    ),
    tenant_model(
        "CubeSource",
        {
            "indexes": [
                models.Index(fields=["tenant", "source_id"], name="source_by_source"),
                models.Index(fields=["tenant", "cube"], condition=models.Q(kind="text"), name="source_of_text"),
            ],
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "cube", "source_id"], name="source_is_named_once")
            ],
        },
        cube=tenant_key("vault.cube"),
        source_id=models.UUIDField(),
        version=models.PositiveIntegerField(),
        kind=choice("quote", "extract", "text", max_length=8),
    ),
    table(
        "CubeOrigin",
        {"db_table": "vault_cubeorigin", "managed": False},
        **DESCRIBED,
        id=models.UUIDField(primary_key=True, serialize=False),
        tenant=tenant(),
        derived=models.UUIDField(),
        stands=models.BooleanField(),
        type=models.CharField(max_length=12),
    ),
    tenant_model(
        "CubeLink",
        {
            "indexes": [models.Index(fields=["tenant", "target"], name="link_by_target")],
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "source", "target", "kind"], name="link_is_unique")
            ],
        },
        source=tenant_key("vault.cube"),
        target=tenant_key("vault.cube"),
        kind=choice("derived", "follows", "causes", "contradicts", "same_entity", "parent", max_length=12),
    ),
    tenant_model(
        "Hold",
        {
            "indexes": [
                models.Index(fields=["tenant", "kind"], name="hold_by_kind"),
                models.Index(
                    fields=["tenant", "subject_id"], condition=~models.Q(subject_id=None), name="hold_by_subject"
                ),
            ]
        },
        kind=choice("freeze", "memory", "query", "subject", max_length=10),
        maker=tenant_key("governance.member"),
        subject_id=models.UUIDField(null=True),
        sealed=models.BinaryField(),
    ),
    tenant_model(
        "HoldCube",
        {
            "indexes": [models.Index(fields=["tenant", "hold"], name="cubes_of_hold")],
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "cube_id", "hold"], name="cube_is_under_a_hold_once")
            ],
        },
        hold=tenant_key("vault.hold"),
        cube_id=models.UUIDField(),
    ),
    tenant_model(
        "HoldReleaseApproval",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "hold", "member"], name="member_approves_a_release_once"),
                models.UniqueConstraint(
                    fields=["tenant", "hold", "transaction"], name="transaction_approves_a_release_once"
                ),
            ]
        },
        hold=tenant_key("vault.hold"),
        member=tenant_key("governance.member"),
        transaction=models.BigIntegerField(default=0),
    ),
    tenant_model(
        "Review",
        {
            "indexes": [
                models.Index(fields=["tenant", "kind", "status", "-id"], name="review_newest_first"),
                models.Index(fields=["tenant", "cube"], name="review_by_cube"),
                models.Index(
                    fields=["tenant", "other"], condition=models.Q(other__isnull=False), name="review_by_other"
                ),
            ],
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "version", "kind"],
                    condition=models.Q(other=None) & ~models.Q(kind="feedback"),
                    name="version_is_reviewed_once_for_each_kind",
                ),
                models.UniqueConstraint(
                    fields=["tenant", "kind", "cube", "other"],
                    condition=models.Q(other__isnull=False),
                    name="pair_is_reviewed_once_for_each_kind",
                ),
            ],
        },
        kind=choice(
            "pii",
            "source_withdrawn",
            "conflict",
            "feedback",
            "fusion",
            "quarantine",
            "sync",
            "pack_supersedes",
            "pack_contradicts",
            "pack_confirms",
            max_length=20,
        ),
        cube=tenant_key("vault.cube"),
        version=tenant_key("vault.cubeversion"),
        other=tenant_key("vault.cube", null=True),
        status=choice(*REVIEW_STATUSES, max_length=12),
        decided_at=models.DateTimeField(null=True),
        decided_kind=models.CharField(max_length=10, blank=True, default="", db_default=""),
        decided_by=models.UUIDField(null=True),
        feedback=choice(
            "useful", "wrong", "outdated", "sensitive", max_length=10, blank=True, default="", db_default=""
        ),
        asked_kind=models.CharField(max_length=10, blank=True, default="", db_default=""),
        asked_by=models.UUIDField(null=True),
        sealed=models.BinaryField(default=bytes, db_default=b""),
    ),
    tenant_model(
        "PiiFinding",
        {
            "indexes": [
                models.Index(fields=["tenant", "version"], name="finding_by_version"),
                models.Index(fields=["tenant", "cube"], name="finding_by_cube"),
            ],
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(ends__gte=models.F("begins")), name="finding_ends_after_it_begins"
                )
            ],
        },
        cube=tenant_key("vault.cube"),
        version=tenant_key("vault.cubeversion"),
        field=choice("content", "title", "metadata", "tags", "speaker", max_length=10),
        leaf=models.PositiveIntegerField(),
        kind=choice(
            "email", "phone", "card", "iban", "national_id", "network_address", "secret", "unchecked", max_length=20
        ),
        begins=models.PositiveIntegerField(),
        ends=models.PositiveIntegerField(),
        rule=models.CharField(max_length=40),
        detector=models.CharField(max_length=40),
        status=choice(*REVIEW_STATUSES, max_length=12),
    ),
    tenant_model(
        "StateTransition",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "cube", "step"], name="transition_step_is_unique")]},
        cube=tenant_key("vault.cube"),
        step=models.PositiveIntegerField(),
        from_state=choice(*STATES, max_length=12),
        to_state=choice(*STATES, max_length=12),
        principal_kind=models.CharField(max_length=10),
        principal_id=models.UUIDField(),
        reason=models.CharField(max_length=500, blank=True, default=""),
        job_id=models.UUIDField(null=True),
    ),
]
ENTRY = (
    "CASE WHEN frequency > 0 THEN uuid_send(cube_id) || int8send(coalesce(session_token, 0)) || "
    "int8send((coalesce(position, 0)::bigint << 32) | (length::bigint << 16) | frequency) END"
)
TERM = {
    "pk": composite_key("tenant_id", "term", "cube_id"),
    "tenant": tenant(db_constraint=False),
    "term": models.BigIntegerField(),
    "cube_id": models.UUIDField(),
    "frequency": models.PositiveSmallIntegerField(),
    "length": models.PositiveSmallIntegerField(),
    "session_token": models.BigIntegerField(null=True),
    "position": models.PositiveIntegerField(null=True),
    "entry": models.GeneratedField(
        expression=RawSQL(ENTRY, []), output_field=models.BinaryField(null=True), db_persist=True
    ),
}
INDEXED = {
    "namespace_id": models.UUIDField(),
    "layer": models.PositiveSmallIntegerField(),
    "type": models.PositiveSmallIntegerField(),
    "persona_id": models.UUIDField(null=True),
    "happened_at": models.DateTimeField(),
}
INDEX = [
    table(
        "EmbeddingModel",
        tenant=models.OneToOneField(
            "governance.tenant", models.DO_NOTHING, primary_key=True, serialize=False, related_name="+"
        ),
        model=models.CharField(max_length=100),
        since=models.DateTimeField(db_default=Now()),
    ),
    table(
        "Posting",
        **INDEXED,
        **TERM,
    ),
    table(
        "ArchivedPosting",
        **INDEXED,
        **TERM,
    ),
    table(
        "Embedding",
        {
            "indexes": [
                models.Index(fields=["tenant", "namespace_id"], name="embedding_by_namespace"),
                models.Index(fields=["tenant", "persona_id"], name="embedding_by_persona"),
                models.Index(fields=["tenant", "layer", "type"], name="embedding_by_layer"),
                models.Index(fields=["tenant", "happened_at"], name="embedding_by_time"),
            ]
        },
        **INDEXED,
        pk=composite_key("tenant_id", "cube_id", "model"),
        tenant=tenant(),
        cube=tenant_key("vault.cube"),
        model=models.CharField(max_length=100),
        version=models.PositiveIntegerField(),
        vector=HalfVectorField(),
    ),
    table(
        "NamespaceSize",
        pk=composite_key("tenant_id", "namespace_id"),
        tenant=tenant(),
        namespace=tenant_key("vault.namespace"),
        cubes=models.PositiveIntegerField(),
        words=models.PositiveBigIntegerField(),
        refreshed_at=models.DateTimeField(db_default=Now()),
    ),
]
CHAT = [
    tenant_model(
        "Conversation",
        {"indexes": [models.Index(fields=["tenant", "member", "-id"], name="conversation_newest_first")]},
        member=tenant_key("governance.member"),
        persona=tenant_key("governance.persona", null=True),
        agent_persona=tenant_key("governance.persona", null=True),
        model=models.CharField(max_length=100, blank=True, default=""),
        key_id=models.UUIDField(null=True),
        sealed_title=models.BinaryField(),
        excluded=models.JSONField(default=list),
        raises_goals=models.BooleanField(default=True),
        updated_at=models.DateTimeField(db_default=Now()),
        deleted_at=models.DateTimeField(null=True),
    ),
    tenant_model(
        "Turn",
        {
            "indexes": [
                models.Index(fields=["tenant", "question"], name="turn_by_question"),
                models.Index(fields=["tenant", "answer"], name="turn_by_answer"),
                models.Index(
                    fields=["tenant", "conversation"], condition=models.Q(goal_id__isnull=False), name="turn_with_goal"
                ),
            ],
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "conversation", "position"], name="turn_position_is_unique")
            ],
        },
        conversation=tenant_key("vault.conversation"),
        position=models.PositiveIntegerField(),
        question=tenant_key("vault.cube", null=True),
        answer=tenant_key("vault.cube", null=True),
        model=models.CharField(max_length=100),
        citations=models.JSONField(default=list),
        prompt_tokens=models.PositiveIntegerField(default=0),
        completion_tokens=models.PositiveIntegerField(default=0),
        cost=models.DecimalField(default=0, db_default=0, max_digits=14, decimal_places=6),
        currency=models.CharField(max_length=3, blank=True, default="", db_default=""),
        failed_models=models.JSONField(default=list, db_default=[]),
        intent=models.CharField(max_length=12, blank=True, default=""),
        retrieved=models.JSONField(default=list),
        goal_id=models.UUIDField(null=True),
        end=choice("complete", "interrupted", max_length=12),
    ),
    tenant_model(
        "ModelEndpoint",
        {"indexes": [models.Index(fields=["tenant", "position"], name="model_endpoint_in_order")]},
        model=models.CharField(max_length=100),
        address=models.CharField(max_length=500),
        sealed_key=models.BinaryField(null=True),
        position=models.PositiveSmallIntegerField(),
        timeout_seconds=models.PositiveSmallIntegerField(),
        retries=models.PositiveSmallIntegerField(),
        prompt_price=models.DecimalField(default=0, max_digits=10, decimal_places=4),
        completion_price=models.DecimalField(default=0, max_digits=10, decimal_places=4),
        currency=models.CharField(max_length=3, default="USD"),
    ),
    tenant_model(
        "Mount",
        {
            "indexes": [
                models.Index(fields=["tenant", "persona"], condition=~models.Q(persona=None), name="mount_by_persona"),
                models.Index(
                    fields=["tenant", "conversation"],
                    condition=~models.Q(conversation=None),
                    name="mount_by_conversation",
                ),
                models.Index(
                    fields=["tenant", "task_token"], condition=~models.Q(task_token=None), name="mount_by_task"
                ),
            ],
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "namespace", "persona", "conversation", "task_token"],
                    nulls_distinct=False,
                    name="namespace_is_mounted_once_in_a_place",
                )
            ],
        },
        namespace=tenant_key("vault.namespace"),
        persona=tenant_key("governance.persona", null=True),
        conversation=tenant_key("vault.conversation", null=True),
        task_token=models.BigIntegerField(null=True),
        sealed_task=models.BinaryField(default=bytes),
        writable=models.BooleanField(default=False),
        member=tenant_key("governance.member", null=True),
    ),
    tenant_model(
        "Summary",
        {
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "namespace", "conversation"], nulls_distinct=False, name="place_has_one_summary"
                ),
                models.CheckConstraint(
                    condition=models.Q(namespace=None) ^ models.Q(conversation=None), name="summary_is_of_one_place"
                ),
            ]
        },
        namespace=tenant_key("vault.namespace", null=True),
        conversation=tenant_key("vault.conversation", null=True),
        passages=models.JSONField(default=list),
        memories=models.PositiveIntegerField(default=0),
        model=models.CharField(max_length=100, blank=True, default=""),
        updated_at=models.DateTimeField(db_default=Now()),
    ),
]
LAYERS = [
    tenant_model(
        "LayerSettings",
        {
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "persona"], nulls_distinct=False, name="layer_settings_are_one_for_persona"
                )
            ]
        },
        persona=tenant_key("governance.persona", null=True),
        values=models.JSONField(default=dict),
    ),
    tenant_model(
        "Stream",
        {
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "persona", "session_token"], name="stream_is_one_for_persona_and_session"
                )
            ]
        },
        persona=tenant_key("governance.persona"),
        agent_persona=tenant_key("governance.persona", null=True),
        session_token=models.BigIntegerField(),
        last_position=models.PositiveIntegerField(default=0, db_default=0),
        updated_at=models.DateTimeField(db_default=Now()),
    ),
    tenant_model(
        "Segment",
        {
            "indexes": [
                models.Index(fields=["tenant", "persona"], condition=models.Q(evicted_at=None), name="segment_resident")
            ]
        },
        persona=tenant_key("governance.persona"),
        vector=HalfVectorField(null=True),
        model=models.CharField(max_length=100, blank=True, default=""),
        keywords=models.JSONField(default=dict),
        pages=models.PositiveIntegerField(default=0),
        unpromoted=models.PositiveIntegerField(default=0),
        visits=models.PositiveIntegerField(default=0, db_default=0),
        visited_at=models.DateTimeField(db_default=Now()),
        evicted_at=models.DateTimeField(null=True),
    ),
    tenant_model(
        "Page",
        {
            "indexes": [
                models.Index(
                    fields=["tenant", "stream", "position"], condition=models.Q(layer="short_term"), name="page_queued"
                ),
                models.Index(
                    fields=["tenant", "stream", "position"],
                    condition=models.Q(vector=None) | models.Q(chain=None) | models.Q(layer="mid_term", segment=None),
                    name="page_to_place",
                ),
                models.Index(fields=["tenant", "segment", "-id"], name="page_by_segment"),
                models.Index(fields=["tenant", "query"], name="page_by_query"),
                models.Index(fields=["tenant", "response"], name="page_by_response"),
            ],
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "stream", "position"], name="page_position_is_unique"),
                models.CheckConstraint(
                    condition=models.Q(query__isnull=False) | models.Q(response__isnull=False), name="page_has_a_side"
                ),
            ],
        },
        stream=tenant_key("vault.stream"),
        position=models.PositiveIntegerField(),
        query=tenant_key("vault.cube", null=True),
        response=tenant_key("vault.cube", null=True),
        at=models.DateTimeField(),
        layer=choice("short_term", "mid_term", max_length=12),
        segment=tenant_key("vault.segment", null=True),
        chain=models.UUIDField(null=True),
        vector=HalfVectorField(null=True),
        model=models.CharField(max_length=100, blank=True, default=""),
        keywords=ArrayField(models.BigIntegerField(), default=list),
        gist=models.JSONField(default=list),
        read_versions=ArrayField(models.PositiveIntegerField(), default=list),
        score=models.FloatField(null=True),
        promoted_at=models.DateTimeField(null=True),
    ),
    tenant_model(
        "LayerEntry",
        {
            "indexes": [
                models.Index(
                    fields=["tenant", "persona", "queue", "-id"],
                    condition=models.Q(left_at=None),
                    name="entry_newest_first",
                ),
                models.Index(fields=["tenant", "cube"], name="entry_by_cube"),
            ],
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "persona", "queue", "cube"], name="entry_is_once_in_a_queue")
            ],
        },
        persona=tenant_key("governance.persona"),
        queue=choice("profile", "knowledge", "agent", max_length=10),
        name=models.CharField(max_length=100, blank=True, default=""),
        cube=tenant_key("vault.cube"),
        action=choice("add", "update", "delete", "nothing", max_length=10),
        reason=models.CharField(max_length=40),
        left_at=models.DateTimeField(null=True),
    ),
    tenant_model(
        "Trait",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "persona", "dimension"], name="trait_is_one_for_dimension")
            ]
        },
        persona=tenant_key("governance.persona"),
        dimension=models.CharField(max_length=40),
        level=models.PositiveSmallIntegerField(),
        confidence=models.FloatField(),
        history=models.JSONField(default=list),
    ),
    tenant_model(
        "TraitEvidence",
        {
            "indexes": [models.Index(fields=["tenant", "page"], name="evidence_by_page")],
            "constraints": [models.UniqueConstraint(fields=["tenant", "trait", "page"], name="evidence_is_named_once")],
        },
        trait=tenant_key("vault.trait"),
        page=tenant_key("vault.page"),
        weight=models.SmallIntegerField(),
    ),
]
TERMS = {
    "state": choice("requested", "active", "expired", "revoked", "ended", max_length=10),
    "number": models.CharField(max_length=20, blank=True, default=""),
    "quota": models.PositiveBigIntegerField(null=True),
    "period": choice("day", "month", "year", max_length=6),
    "purposes": ArrayField(models.CharField(max_length=200), default=list),
    "price": models.CharField(max_length=100, blank=True, default=""),
    "valid_to": models.DateTimeField(null=True),
    "reads": models.PositiveBigIntegerField(default=0),
    "reason": models.CharField(max_length=300, blank=True, default=""),
}
STORE = [
    tenant_model(
        "Pack",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "name"], name="pack_name_is_unique_in_tenant")]},
        name=models.CharField(max_length=60),
        title=models.CharField(max_length=120),
        description=models.CharField(max_length=300, blank=True, default=""),
        readme=models.TextField(blank=True, default=""),
        licence=models.CharField(max_length=60, blank=True, default=""),
        topic=choice(
            "family", "health", "home", "food", "work", "travel", "learning", "technology", "other", max_length=12
        ),
        authors=ArrayField(models.CharField(max_length=100), default=list),
        keywords=ArrayField(models.CharField(max_length=100), default=list),
        member=tenant_key("governance.member", null=True),
    ),
    tenant_model(
        "PackVersion",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "pack", "number"], name="pack_number_is_unique")]},
        pack=tenant_key("vault.pack"),
        number=models.CharField(max_length=20),
        parts=ArrayField(models.PositiveIntegerField(), size=3),
        state=choice("scanning", "blocked", "ready", "deprecated", "yanked", max_length=10),
        changelog=models.CharField(max_length=2000, blank=True, default=""),
        reason=models.CharField(max_length=300, blank=True, default=""),
        count=models.PositiveIntegerField(default=0),
        size=models.PositiveIntegerField(default=0),
        digest=models.CharField(max_length=64, blank=True, default=""),
        key_id=models.CharField(max_length=16, blank=True, default=""),
        languages=ArrayField(models.CharField(max_length=8), default=list),
        report=models.JSONField(default=dict),
        subjects=ArrayField(models.UUIDField(), default=list),
        sealed=models.BinaryField(default=bytes),
        wordings=models.BinaryField(default=bytes, db_default=b""),
        published_at=models.DateTimeField(null=True),
        member=tenant_key("governance.member", null=True),
    ),
    tenant_model(
        "Publication",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "pack"], name="pack_is_published_once")]},
        pack=tenant_key("vault.pack"),
        version=tenant_key("vault.packversion", null=True),
        waiting=tenant_key("vault.packversion", null=True),
        state=choice("waiting", "published", "rejected", "hidden", "banned", max_length=10),
        visibility=choice("tenant", "tenants", "installation", max_length=12),
        tenants=ArrayField(models.UUIDField(), default=list),
        terms=models.JSONField(default=dict),
        reason=models.CharField(max_length=300, blank=True, default=""),
        requested_by=tenant_key("governance.member", null=True),
        approved_by=tenant_key("governance.member", null=True),
        published_at=models.DateTimeField(null=True),
        stars=models.PositiveIntegerField(default=0),
        ratings=models.PositiveIntegerField(default=0),
        subscribers=models.PositiveIntegerField(default=0),
    ),
    tenant_model(
        "Listing",
        {
            "indexes": [
                models.Index(
                    models.F("subscribers").desc(),
                    models.F("id").desc(),
                    condition=models.Q(is_offered=True),
                    name="listing_by_use",
                ),
                models.Index(
                    models.F("rating").desc(),
                    models.F("id").desc(),
                    condition=models.Q(is_offered=True),
                    name="listing_by_rating",
                ),
                models.Index(
                    models.F("published_at").desc(),
                    models.F("id").desc(),
                    condition=models.Q(is_offered=True),
                    name="listing_by_time",
                ),
                models.Index(fields=["publisher_slug", "name"], name="listing_by_name"),
            ]
        },
        publisher=models.CharField(max_length=200),
        publisher_slug=models.CharField(max_length=63),
        pack=tenant_key("vault.pack"),
        version=tenant_key("vault.packversion"),
        name=models.CharField(max_length=60),
        title=models.CharField(max_length=120),
        description=models.CharField(max_length=300),
        licence=models.CharField(max_length=60),
        topic=models.CharField(max_length=12),
        keywords=ArrayField(models.TextField()),
        languages=ArrayField(models.TextField()),
        texts=models.TextField(),
        vector=HalfVectorField(null=True),
        model=models.CharField(max_length=100, blank=True, default="", db_default=""),
        number=models.CharField(max_length=20),
        count=models.PositiveIntegerField(),
        digest=models.CharField(max_length=64),
        key_id=models.CharField(max_length=16),
        is_offered=models.BooleanField(),
        visibility=models.CharField(max_length=12),
        tenants=ArrayField(models.UUIDField()),
        terms=models.JSONField(),
        rating=models.FloatField(),
        ratings=models.PositiveIntegerField(),
        subscribers=models.PositiveIntegerField(),
        published_at=models.DateTimeField(),
    ),
    tenant_model(
        "Subscription",
        {
            "indexes": [models.Index(fields=["tenant", "namespace"], name="subscription_by_namespace")],
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "publication_id"],
                    condition=models.Q(state__in=["requested", "active"]),
                    name="publication_is_subscribed_once",
                )
            ],
        },
        **TERMS,
        publication_id=models.UUIDField(),
        publisher_id=models.UUIDField(),
        publisher=models.CharField(max_length=200),
        name=models.CharField(max_length=130),
        title=models.CharField(max_length=120),
        namespace=tenant_key("vault.namespace"),
        range=models.CharField(max_length=20),
        delivery=choice("pull", "push", max_length=4),
        available=models.CharField(max_length=20, blank=True, default=""),
        is_trusted=models.BooleanField(default=False, db_default=False),
        used=models.PositiveBigIntegerField(default=0),
        period_from=models.DateTimeField(db_default=Now()),
        member=tenant_key("governance.member", null=True),
    ),
    tenant_model(
        "PackMemory",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "subscription", "key"], name="pack_memory_is_installed_once")
            ]
        },
        subscription=tenant_key("vault.subscription"),
        cube=tenant_key("vault.cube"),
        key=models.UUIDField(),
        digest=models.CharField(max_length=64, blank=True),
        is_overridden=models.BooleanField(default=False),
    ),
    tenant_model(
        "Contract",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "subscription_id"], name="subscription_has_one_contract")
            ]
        },
        **TERMS,
        publication=tenant_key("vault.publication"),
        subscription_id=models.UUIDField(),
        subscriber_id=models.UUIDField(),
        subscriber=models.CharField(max_length=200),
    ),
    tenant_model(
        "PackRead",
        {
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "subscription_id", "is_publishers", "number"], name="pack_read_is_counted_once"
                )
            ]
        },
        subscription_id=models.UUIDField(),
        is_publishers=models.BooleanField(default=False),
        number=models.PositiveBigIntegerField(),
        memories=models.PositiveIntegerField(),
        at=models.DateTimeField(db_default=Now()),
        is_sent=models.BooleanField(default=False),
    ),
    tenant_model(
        "PackRating",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "publication_id", "member"], name="member_rates_a_pack_once"),
                models.UniqueConstraint(fields=["tenant", "source_id"], name="rating_is_reported_once"),
                models.CheckConstraint(condition=models.Q(stars__range=(1, 5)), name="rating_has_one_to_five_stars"),
            ]
        },
        publication_id=models.UUIDField(),
        member=tenant_key("governance.member", null=True),
        source_id=models.UUIDField(null=True),
        organisation=models.CharField(max_length=200),
        stars=models.PositiveSmallIntegerField(),
        text=models.CharField(max_length=500, blank=True, default=""),
        number=models.CharField(max_length=20, blank=True, default=""),
        rated_at=models.DateTimeField(db_default=Now()),
    ),
    tenant_model(
        "PackReport",
        {
            "indexes": [models.Index(fields=["-id"], condition=models.Q(decided_at=None), name="pack_report_open")],
            "constraints": [
                models.UniqueConstraint(
                    fields=["tenant", "publication_id", "member"],
                    condition=models.Q(decided_at=None),
                    name="member_has_one_open_report_of_a_pack",
                )
            ],
        },
        publication_id=models.UUIDField(),
        publisher_id=models.UUIDField(),
        name=models.CharField(max_length=130),
        title=models.CharField(max_length=120),
        member=tenant_key("governance.member", null=True),
        reason=choice("personal_data", "harmful", "wrong", "rights", "other", max_length=13),
        text=models.CharField(max_length=500, blank=True, default=""),
        decision=models.CharField(max_length=7, blank=True, default=""),
        decided_at=models.DateTimeField(null=True),
    ),
    tenant_model(
        "PackProposal",
        {
            "indexes": [models.Index(fields=["tenant", "publication_id", "state"], name="proposal_by_publication")],
            "constraints": [models.UniqueConstraint(fields=["tenant", "source_id"], name="proposal_is_delivered_once")],
        },
        publication_id=models.UUIDField(),
        pack=models.CharField(max_length=130),
        key=models.UUIDField(),
        number=models.CharField(max_length=20),
        member=tenant_key("governance.member", null=True),
        source_id=models.UUIDField(null=True),
        source_tenant=models.UUIDField(null=True),
        organisation=models.CharField(max_length=200),
        state=choice("open", "accepted", "declined", max_length=10),
        decided_at=models.DateTimeField(null=True),
        sealed=models.BinaryField(),
    ),
]
WORK = [
    tenant_model(
        "ActionItem",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "job", "cube_id"], name="action_names_a_memory_once")
            ]
        },
        job=tenant_key("governance.job"),
        cube_id=models.UUIDField(),
        version=models.PositiveIntegerField(),
        layer=models.CharField(max_length=12, blank=True, default="", db_default=""),
    ),
    tenant_model(
        "DailyCount",
        {"indexes": [models.Index(fields=["tenant", "name", "day"], name="daily_count_by_day")]},
        day=models.DateField(),
        name=choice(
            "layer",
            "state",
            "semantic_type",
            "expiry",
            "search",
            "job",
            "usage",
            "audit",
            "tier",
            "tier_bytes",
            max_length=16,
        ),
        value=models.CharField(max_length=40),
        namespace=tenant_key("vault.namespace", null=True),
        member=tenant_key("governance.member", null=True),
        count=models.BigIntegerField(),
    ),
    tenant_model(
        "SavedView",
        {"indexes": [models.Index(fields=["tenant", "member", "id"], name="saved_view_by_member")]},
        member=tenant_key("governance.member"),
        sealed=models.BinaryField(),
    ),
    tenant_model(
        "SyncPeer",
        {"constraints": [models.UniqueConstraint(fields=["tenant", "name"], name="sync_peer_has_a_name_of_its_own")]},
        name=models.CharField(max_length=100),
        address=models.CharField(max_length=500),
        sealed_key=models.BinaryField(),
        namespace=models.CharField(max_length=200),
        remote_namespace=models.CharField(max_length=200),
        direction=choice("pull", "push", "both", max_length=4),
        last_job=tenant_key("governance.job", null=True),
    ),
    tenant_model(
        "SyncLink",
        {
            "constraints": [
                models.UniqueConstraint(fields=["tenant", "peer", "cube_id"], name="memory_has_one_counterpart"),
                models.UniqueConstraint(fields=["tenant", "peer", "remote_id"], name="counterpart_is_linked_once"),
            ]
        },
        peer=tenant_key("vault.syncpeer"),
        cube_id=models.UUIDField(),
        remote_id=models.UUIDField(),
        version=models.PositiveIntegerField(),
        remote_version=models.PositiveIntegerField(),
    ),
    tenant_model(
        "Upload",
        member=tenant_key("governance.member"),
        form=models.CharField(max_length=16),
        sealed=models.BinaryField(),
    ),
]


class Migration(migrations.Migration):
    initial = True
    dependencies = [("governance", "0002_tables")]

    operations = [CreateTables(*MEMORIES, *INDEX, *CHAT, *LAYERS, *STORE, *WORK)]
