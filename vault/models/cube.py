from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self, TypeVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from governance.access.decisions.principal_grants import grants_of, principal_grants
from governance.access.decisions.rules import allowing_actions, denying_actions, reads_content, sees_private
from governance.actor import Actor
from governance.models.base import TenantModel
from governance.models.grant import OBJECT_PERMISSIONS, ObjectGrant
from governance.models.persona import Persona
from governance.models.subject import DataSubject
from governance.models.tenant import Member
from governance.policies.purposes import denied_by_purpose
from governance.vocabulary import Action, Effect
from vault.models.namespace import NOTHING, Namespace, bound_to, namespaces_granted
from vault.vocabulary import (
    AccessLevel,
    Layer,
    LinkKind,
    ListedState,
    MemoryType,
    Modality,
    NamespaceKind,
    SemanticType,
    Sensitivity,
    Source,
    SourceKind,
    State,
)

IS_HELD = models.expressions.RawSQL(
    "vault_cube_is_held(vault_cube.tenant_id, vault_cube.id)", [], models.BooleanField()
)

# The time of the event. CASE, because PostgreSQL evaluates COALESCE only after row-level security.
HAPPENED_AT = models.Case(models.When(event_time=None, then="created_at"), default="event_time")

OBJECT_TYPE = "memory"
PINNED = 0.9  # priority from which a memory always belongs to the working set of its persona
Row = TypeVar("Row", bound=models.Model)


class AskedOfEachRow(Exists):
    """EXISTS that the planner does not turn into a join."""

    template = "EXISTS(%(subquery)s OFFSET 0)"


class ReachQuerySet(models.QuerySet[Row]):
    """Rows with the fields of Described, filtered by which rows an actor may read."""

    def reached_by(self, actor: Actor) -> Self:
        """Return the rows of the actor's tenant that it may read, ignoring deletion, expiry and sources."""
        denied = denied_by_purpose(actor)
        rows = self.filter(tenant_id=actor.tenant_id)
        rows = rows.exclude(denied) if denied is not None else rows
        if actor.is_system:
            return rows
        if not sees_private(actor):
            granted = _by_grant(actor)
            rows = rows.filter(_by_role(actor) if granted is None else _by_role_without_join(actor) | granted)
        rows = rows.filter(persona_condition(actor), bound_to(actor, "namespace__path"))
        return rows.exclude_denied(actor)

    def exclude_denied(self, actor: Actor) -> Self:
        """Leave out the cubes that a grant denies to the actor, directly or with their namespace."""
        rows = self
        if principal_grants(actor).has("namespace", Effect.DENY):
            rows = rows.exclude(namespace_id__in=namespaces_granted(actor, Effect.DENY))
        if principal_grants(actor).has(OBJECT_TYPE, Effect.DENY):
            rows = rows.exclude(Exists(cubes_granted(actor, Effect.DENY).filter(content_object_id=OuterRef("pk"))))
        return rows


class CubeQuerySet(ReachQuerySet["Cube"]):
    def stored(self) -> Self:
        """Return the rows that are neither deleted nor expired now."""
        return self.filter(deleted_at=None).filter(Q(expires_at=None) | Q(expires_at__gt=Now()))

    def readable(self) -> Self:
        """Return the rows that readers may be shown: stored, not in quarantine, and with all their sources readable
        too."""
        return self.stored().filter(is_quarantined=False).resting_on(CubeOrigin.objects.filter(stands=True))

    def listed_with_ended(self, actor: Actor, ended: Collection[ListedState]) -> Self:
        """Return the rows of `visible_to`, and the expired or deleted ones, as in `ended`, that the actor could read
        before, within the general grace period."""
        earliest, lasting = Now() - timedelta(days=settings.DELETED_GRACE_DAYS), Q(expires_at=None)
        there = Q(deleted_at=None)
        unexpired = lasting | Q(expires_at__gt=Now())
        if ListedState.EXPIRED in ended:
            there &= lasting | Q(expires_at__gte=earliest)
        else:
            there &= unexpired
        if ListedState.DELETED in ended:
            there |= Q(deleted_at__gte=earliest) & unexpired
        rows = self.filter(there, is_quarantined=False)
        return rows.resting_on(CubeOrigin.objects.filter(stands=True)).in_reach_of(actor)

    def visible_to(self, actor: Actor) -> Self:
        """Return the readable rows of the actor's tenant that it may read. May be empty; never raises."""
        return self.readable().in_reach_of(actor)

    def restorable_by(self, actor: Actor) -> Self:
        """Return the deleted, unexpired rows that the actor could read before, within the general grace period.

        A derived memory can be restored only after its sources.
        """
        earliest = Now() - timedelta(days=settings.DELETED_GRACE_DAYS)
        rows = self.filter(deleted_at__gte=earliest, is_quarantined=False).filter(
            Q(expires_at=None) | Q(expires_at__gt=Now())
        )
        return rows.resting_on(CubeOrigin.objects.filter(stands=True)).in_reach_of(actor)

    def inactive_for(self, actor: Actor) -> Self:
        """Return the deleted, expired and archived rows that the actor could read before; the first two within the
        general grace period.
        """
        earliest = Now() - timedelta(days=settings.DELETED_GRACE_DAYS)
        lasting = Q(expires_at=None) | Q(expires_at__gt=Now())
        deleted = Q(deleted_at__gte=earliest) & lasting
        expired = Q(deleted_at=None, expires_at__gte=earliest, expires_at__lte=Now())
        archived = Q(deleted_at=None, state=State.ARCHIVED) & lasting
        rows = self.filter(deleted | expired | archived, is_quarantined=False)
        return rows.resting_on(CubeOrigin.objects.filter(stands=True)).in_reach_of(actor)

    def in_reach_of(self, actor: Actor) -> Self:
        """Return the rows that the actor may read, with all their sources, ignoring deletion and expiry."""
        reached = self.reached_by(actor)
        return reached if actor.is_system else reached.resting_on(CubeOrigin.objects.all().reached_by(actor))

    def resting_on(self, origins: "ReachQuerySet[CubeOrigin]") -> Self:
        """Return the rows whose sources are all among `origins`. Quoted sources are ignored, because only their quotes
        are hidden."""
        present = origins.filter(derived=OuterRef("cube_id"), pk=OuterRef("source_id"))
        missing = CubeSource.objects.filter(cube_id=OuterRef("pk")).exclude(kind=SourceKind.QUOTE)
        # A join would compare each source with every readable memory of the tenant.
        return self.filter(Q(has_sources=False) | ~Exists(missing.exclude(AskedOfEachRow(present))))

    def free(self) -> Self:
        """Return the rows without a freeze or legal hold, as the database function vault_cube_is_held decides."""
        return self.exclude(IS_HELD)


def cubes_granted(actor: Actor, effect: Effect) -> models.QuerySet[Any]:
    """Return the grants that allow, or deny, the actor to read single cubes, as a subquery."""
    actions = allowing_actions(Action.READ) if effect is Effect.ALLOW else denying_actions(Action.READ)
    return grants_of(actor, OBJECT_TYPE, effect, actions)


def _by_role(actor: Actor) -> Q:
    if not reads_content(actor):
        return NOTHING
    mine = Q(namespace__owner_id=actor.member_id)
    not_private = ~Q(namespace__kind=NamespaceKind.PRIVATE)
    own_or_open = Q(owner_id=actor.member_id) | ~Q(access_level=AccessLevel.PRIVATE)
    return (mine | not_private) & own_or_open


def _by_role_without_join(actor: Actor) -> Q:
    """Return the condition of `_by_role` without a join, which would make the planner evaluate each grant twice."""
    if not reads_content(actor):
        return NOTHING
    mine_or_open = Q(owner_id=actor.member_id) | ~Q(kind=NamespaceKind.PRIVATE)
    places = Namespace.objects.filter(mine_or_open, tenant_id=actor.tenant_id).values("id")
    own_or_open = Q(owner_id=actor.member_id) | ~Q(access_level=AccessLevel.PRIVATE)
    return Q(namespace_id__in=places) & own_or_open


def _by_grant(actor: Actor) -> Q | None:
    """Return the condition of cubes that grants let the actor read; None without grants.

    A grant on a namespace covers its memories except other members' private ones; a grant on a cube covers that cube.
    """
    standing, reach = principal_grants(actor), None
    if standing.has("namespace", Effect.ALLOW):
        of_namespace = ~Q(access_level=AccessLevel.PRIVATE) | Q(owner_id=F("namespace__owner_id"))
        reach = Q(namespace_id__in=namespaces_granted(actor, Effect.ALLOW)) & of_namespace
    if standing.has(OBJECT_TYPE, Effect.ALLOW):
        of_cube = Q(Exists(cubes_granted(actor, Effect.ALLOW).filter(content_object_id=OuterRef("pk"))))
        reach = of_cube if reach is None else reach | of_cube
    return reach


def persona_condition(actor: Actor) -> Q:
    """Return the condition of the memories whose persona the actor may read.

    A key that is bound to a persona reads only its memories. A persona scope also lets memories without a persona and
    those of mounted namespaces pass.
    """
    condition = Q()
    if actor.binding is not None and actor.binding.persona_id is not None:
        condition &= Q(persona_id=actor.binding.persona_id)
    if actor.persona_scope is not None:
        scope = actor.persona_scope
        within = Q(persona_id=None) | Q(persona_id__in=sorted(scope.persona_ids))
        condition &= within | Q(namespace_id__in=sorted(scope.namespace_ids)) if scope.namespace_ids else within
    return condition


class Described(models.Model):
    """The unsealed fields that an actor may change; each version stores their values of that time."""

    namespace = models.ForeignKey(
        Namespace, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    persona = models.ForeignKey(
        Persona, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    subject = models.ForeignKey(
        DataSubject, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    owner = models.ForeignKey(
        Member, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    access_level = models.CharField(max_length=10, choices=[(level, level) for level in AccessLevel])
    semantic_type = models.CharField(max_length=12, choices=[(kind, kind) for kind in SemanticType])
    sensitivity = models.CharField(max_length=12, choices=[(level, level) for level in Sensitivity])
    tags = ArrayField(models.CharField(max_length=100), default=list)
    importance = models.FloatField(default=0.5)
    priority = models.FloatField(default=0.0)
    event_time = models.DateTimeField(null=True)
    valid_from = models.DateTimeField(null=True)
    valid_to = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


def happens_at(said_at: datetime | None, event_time: datetime | None) -> datetime | None:
    """Return the time of the event that a statement tells of, if it is another than that at which it was said."""
    return event_time if said_at is not None and event_time != said_at else None


class Cube(Described, TenantModel):
    """One unit of memory in its present state. Its words are sealed in its versions; this row has the unsealed
    fields."""

    type = models.CharField(max_length=12, choices=[(kind, kind) for kind in MemoryType])
    layer = models.CharField(max_length=12, choices=[(layer, layer) for layer in Layer])
    modality = models.CharField(max_length=12, choices=[(kind, kind) for kind in Modality])
    language = models.CharField(max_length=8)
    state = models.CharField(max_length=12, choices=[(state, state) for state in State])
    source = models.CharField(max_length=10, choices=[(source, source) for source in Source])
    reader = models.CharField(max_length=60)
    trust = models.FloatField(default=0.5)
    session_token = models.BigIntegerField(null=True)
    position = models.PositiveIntegerField(null=True)
    said_at = models.DateTimeField(null=True)  # of what somebody said (vault/cubes/as_of.py)
    speaker_marks = ArrayField(models.BigIntegerField(), default=list)
    entity_marks = ArrayField(models.BigIntegerField(), default=list)
    mentions_time = models.BooleanField(default=False)
    asks = models.FloatField(default=0.0)  # the share of its text that is questions
    superseded_by = models.UUIDField(null=True)
    suspended_expiry = models.DateTimeField(null=True)  # `expires_at` while a hold keeps it from expiring (triggers)
    expiry_policy = models.UUIDField(null=True)  # which policy set `expires_at`; none: a person did, or nobody
    retention_class = models.CharField(max_length=40, blank=True, default="")
    purpose_tags = ArrayField(models.CharField(max_length=100), default=list)
    content_hash = models.BinaryField(max_length=32)
    token_count = models.PositiveIntegerField()
    term_count = models.PositiveIntegerField()
    version = models.PositiveIntegerField(default=1)
    updated_at = models.DateTimeField(db_default=Now())
    deleted_at = models.DateTimeField(null=True)
    has_sources = models.BooleanField(default=False)  # there may be rows of CubeSource
    # True if the search index contains it (vault/cubes/eligibility.py).
    is_indexed = models.BooleanField(default=True, db_default=True)
    # True while it waits for a review; it is readable in the inbox only (vault/reviews/quarantine.py).
    is_quarantined = models.BooleanField(default=False, db_default=False)
    is_cold = models.BooleanField(default=False, db_default=False)  # it has no vector: words alone find it
    # True for a message that states nothing (vault/cubes/filters.py says where it is shown).
    is_dialogue_only = models.BooleanField(default=False, db_default=False)

    objects: ClassVar[CubeQuerySet] = CubeQuerySet.as_manager()  # type: ignore[assignment]

    @property
    def stated_at(self) -> datetime:
        """The time at which it was said, else that which its client gave it, else that of its storage."""
        return self.said_at or self.event_time or self.created_at

    @property
    def happens_at(self) -> datetime | None:
        return happens_at(self.said_at, self.event_time)

    class Meta:
        permissions = OBJECT_PERMISSIONS
        indexes = [
            models.Index(fields=["tenant", "-id"], name="cube_newest_first"),
            models.Index(fields=["tenant", "namespace", "-id"], name="cube_by_namespace"),
            models.Index(fields=["tenant", "namespace", "content_hash"], name="cube_by_content"),
            models.Index(fields=["tenant", "session_token", "position"], name="cube_by_session"),
            models.Index(fields=["tenant", "subject"], name="cube_by_subject", condition=~Q(subject=None)),
            models.Index(
                F("tenant"),
                F("namespace"),
                HAPPENED_AT,
                name="cube_by_time",
                condition=Q(deleted_at=None),
            ),
            models.Index(
                fields=["tenant", "expires_at"],
                name="cube_indexed_by_expiry",
                condition=Q(expires_at__isnull=False, is_indexed=True),
            ),
            models.Index(fields=["tenant", "expires_at"], name="cube_by_expiry", condition=Q(expires_at__isnull=False)),
            models.Index(fields=["tenant", "-id"], name="cube_in_trash", condition=Q(deleted_at__isnull=False)),
            models.Index(fields=["tenant", "persona"], name="cube_pinned", condition=Q(priority__gte=PINNED)),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(importance__gte=0, importance__lte=1), name="importance_is_between_0_and_1"
            ),
            models.CheckConstraint(condition=Q(priority__gte=0, priority__lte=1), name="priority_is_between_0_and_1"),
            models.CheckConstraint(
                condition=Q(valid_from=None) | Q(valid_to=None) | Q(valid_to__gt=F("valid_from")),
                name="validity_ends_after_it_begins",
            ),
        ]


class PastDeletion(TenantModel):
    """A deletion that was taken back: it lasted from `deleted_at` until `created_at`.

    A trigger adds the row when the memory is restored. Insert-only; deleted with its memory.
    """

    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    deleted_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "cube"], name="past_deletion_by_cube")]


class CubeGrant(ObjectGrant):
    """A grant of a right on one memory, in any namespace. It is deleted with its memory."""

    content_object = models.ForeignKey(
        Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    class Meta(ObjectGrant.Meta):
        pass


class CubeVersion(Described, TenantModel):
    """A version of a cube: immutable, numbered from 1, with the hash of its predecessor."""

    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    number = models.PositiveIntegerField()
    sealed = models.BinaryField()
    terms = ArrayField(models.BigIntegerField(), default=list)
    principal_kind = models.CharField(max_length=10)
    principal_id = models.UUIDField()
    reason = models.CharField(max_length=500, blank=True, default="")
    previous_hash = models.BinaryField(max_length=32, null=True)
    hash = models.BinaryField(max_length=32)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "cube", "number"], name="version_number_is_unique")]
        indexes = [models.Index(fields=["tenant", "subject"], name="version_by_subject", condition=~Q(subject=None))]


class CubeUse(models.Model):
    """The use of a cube. Only jobs write it, so that reads stay cheap."""

    pk = models.CompositePrimaryKey("tenant_id", "cube_id")
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    access_count = models.PositiveIntegerField(default=0)
    last_accessed_at = models.DateTimeField(null=True)
    heat = models.FloatField(default=0.0)  # written by vault/lifecycle/behaviour.py
    fingerprint = HalfVectorField(null=True)  # vault/cubes/fingerprints.py
    fingerprint_model = models.CharField(max_length=100, blank=True, default="", db_default="")
    fingerprint_count = models.PositiveIntegerField(default=0, db_default=0)  # questions


class CubeSource(TenantModel):
    """A source of a memory: a version of another memory whose words it uses, directly or through others.

    A reader of the derived memory must be allowed to read all its sources. `source_id` is no foreign key, because the
    source may be erased.
    """

    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    source_id = models.UUIDField()
    version = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=[(kind, kind) for kind in SourceKind])

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "cube", "source_id"], name="source_is_named_once"),
        ]
        indexes = [
            models.Index(fields=["tenant", "source_id"], name="source_by_source"),
            models.Index(fields=["tenant", "cube"], name="source_of_text", condition=Q(kind=SourceKind.TEXT)),
        ]


class CubeOrigin(Described):
    """A source that still exists, with its fields as a memory (a database view). stands: not deleted, expired or
    redacted."""

    id = models.UUIDField(primary_key=True)
    tenant = models.ForeignKey("governance.Tenant", on_delete=models.DO_NOTHING, db_index=False, related_name="+")
    derived = models.UUIDField()
    stands = models.BooleanField()
    type = models.CharField(max_length=12)

    objects: ClassVar[ReachQuerySet["CubeOrigin"]] = ReachQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        managed = False
        db_table = "vault_cubeorigin"


class CubeLink(TenantModel):
    """A typed edge between two cubes of one tenant."""

    source = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    target = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    kind = models.CharField(max_length=12, choices=[(kind, kind) for kind in LinkKind])
    is_by_person = models.BooleanField(default=False, db_default=False)  # else computed, or of lineage

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "source", "target", "kind"], name="link_is_unique"),
        ]
        indexes = [models.Index(fields=["tenant", "target"], name="link_by_target")]
