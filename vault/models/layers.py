"""The short-, mid- and long-term layers of a persona: rows that refer to cubes, which hold the words."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from governance.models.base import TenantModel
from governance.models.persona import Persona
from vault.models.cube import Cube
from vault.vocabulary import EntryAction, EntryQueue, PageLayer


class LayerSettings(TenantModel):
    """Constants of the layers, set by a tenant (persona None) or for one persona. values: name → number.

    replacement: the policy that decides which memories leave a full working set; empty for the default.
    """

    persona = models.ForeignKey(
        Persona, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    values = models.JSONField(default=dict)
    replacement = models.CharField(max_length=10, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "persona"], name="layer_settings_are_one_for_persona", nulls_distinct=False
            )
        ]


class Stream(TenantModel):
    """One conversation of a persona. Its row is locked while pages are appended, so that they stay in order."""

    persona = models.ForeignKey(
        Persona, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    agent_persona = models.ForeignKey(
        Persona, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    session_token = models.BigIntegerField()  # keyed: the conversation, or the caller's session
    last_position = models.PositiveIntegerField(default=0, db_default=0)
    updated_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["tenant", "updated_at"], name="stream_open", condition=Q(ended_at=None))]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "persona", "session_token"], name="stream_is_one_for_persona_and_session"
            )
        ]


class Segment(TenantModel):
    """Pages on one topic. visits, unpromoted: counts for its heat, which is computed on demand.

    vector: the mean of its pages' vectors by `model`; keywords: keyed token → number of pages with it. The database
    clears both when a page is deleted; they are computed again when next needed.
    """

    persona = models.ForeignKey(
        Persona, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    vector = HalfVectorField(null=True)
    model = models.CharField(max_length=100, blank=True, default="")
    keywords = models.JSONField(default=dict)
    pages = models.PositiveIntegerField(default=0)
    unpromoted = models.PositiveIntegerField(default=0)
    visits = models.PositiveIntegerField(default=0, db_default=0)
    visited_at = models.DateTimeField(db_default=Now())
    evicted_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "persona"], name="segment_resident", condition=Q(evicted_at=None)),
        ]


class Page(TenantModel):
    """A question and its answer in a stream; one of the two may be missing.

    chain: the first page of its topic, None until the page is placed. read_versions: the versions of the two cubes from
    which `vector` and `keywords` were made. gist: [memory, version, start, end] of the passage shown for the page.
    """

    stream = models.ForeignKey(
        Stream, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    position = models.PositiveIntegerField()
    query = models.ForeignKey(
        Cube, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    response = models.ForeignKey(
        Cube, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    at = models.DateTimeField()
    layer = models.CharField(max_length=12, choices=[(layer, layer) for layer in PageLayer])
    segment = models.ForeignKey(
        Segment, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    chain = models.UUIDField(null=True)
    vector = HalfVectorField(null=True)
    model = models.CharField(max_length=100, blank=True, default="")
    keywords = ArrayField(models.BigIntegerField(), default=list)
    gist = models.JSONField(default=list)
    read_versions = ArrayField(models.PositiveIntegerField(), default=list)
    score = models.FloatField(null=True)  # its Fscore with the segment that it joined
    promoted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "stream", "position"], name="page_position_is_unique"),
            models.CheckConstraint(
                condition=Q(query__isnull=False) | Q(response__isnull=False), name="page_has_a_side"
            ),
        ]
        indexes = [
            # A partial index of few rows. Without it the planner reads all pages of a stream.
            models.Index(fields=["tenant", "stream", "position"], name="page_queued", condition=Q(layer="short_term")),
            models.Index(
                fields=["tenant", "stream", "position"],
                name="page_to_place",
                condition=Q(vector=None) | Q(chain=None) | Q(layer="mid_term", segment=None),
            ),
            models.Index(fields=["tenant", "segment", "-id"], name="page_by_segment"),
            models.Index(fields=["tenant", "query"], name="page_by_query"),
            models.Index(fields=["tenant", "response"], name="page_by_response"),
        ]


class LayerEntry(TenantModel):
    """A memory in one of the long-term queues of a persona. name: of a profile field."""

    persona = models.ForeignKey(
        Persona, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    queue = models.CharField(max_length=10, choices=[(queue, queue) for queue in EntryQueue])
    name = models.CharField(max_length=100, blank=True, default="")
    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    action = models.CharField(max_length=10, choices=[(action, action) for action in EntryAction])
    reason = models.CharField(max_length=40)
    left_at = models.DateTimeField(null=True)  # it was superseded, or the queue was full

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "persona", "queue", "cube"], name="entry_is_once_in_a_queue"),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "persona", "queue", "-id"], name="entry_newest_first", condition=Q(left_at=None)
            ),
            models.Index(fields=["tenant", "cube"], name="entry_by_cube"),
        ]


class Trait(TenantModel):
    """A trait of a persona in one dimension (vault/layers/traits.json). history: [{at, level, confidence, pages}]."""

    persona = models.ForeignKey(
        Persona, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    dimension = models.CharField(max_length=40)
    level = models.PositiveSmallIntegerField()
    confidence = models.FloatField()
    history = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "persona", "dimension"], name="trait_is_one_for_dimension")
        ]


class TraitEvidence(TenantModel):
    """A page that supports (weight 1) or contradicts (weight -1) a trait. Deleted with the page."""

    trait = models.ForeignKey(Trait, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    page = models.ForeignKey(Page, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    weight = models.SmallIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "trait", "page"], name="evidence_is_named_once")]
        indexes = [models.Index(fields=["tenant", "page"], name="evidence_by_page")]
