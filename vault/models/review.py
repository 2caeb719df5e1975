from django.db import models

from governance.models.base import TenantModel
from governance.vocabulary import PiiKind
from vault.models.cube import Cube, CubeVersion
from vault.vocabulary import FeedbackKind, PiiField, ReviewKind, ReviewStatus


class Review(TenantModel):
    """A decision that a person must make about one version of a cube.

    other: the cube to fuse with, or the later cube that contradicts it. feedback, asked_kind, asked_by, sealed: for
    feedback only: its kind, the reader who gave it, and the correction and note until it is decided.
    """

    kind = models.CharField(max_length=20, choices=[(kind, kind) for kind in ReviewKind])
    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    version = models.ForeignKey(
        CubeVersion, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    other = models.ForeignKey(
        Cube, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    status = models.CharField(max_length=12, choices=[(status, status) for status in ReviewStatus])
    decided_at = models.DateTimeField(null=True)
    decided_kind = models.CharField(max_length=10, blank=True, default="", db_default="")
    decided_by = models.UUIDField(null=True)
    feedback = models.CharField(
        max_length=10, choices=[(kind, kind) for kind in FeedbackKind], blank=True, default="", db_default=""
    )
    asked_kind = models.CharField(max_length=10, blank=True, default="", db_default="")
    asked_by = models.UUIDField(null=True)
    sealed = models.BinaryField(default=bytes, db_default=b"")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "version", "kind"],
                name="version_is_reviewed_once_for_each_kind",
                condition=models.Q(other=None)
                & ~models.Q(kind=ReviewKind.FEEDBACK),  # several readers may say the same
            ),
            models.UniqueConstraint(
                fields=["tenant", "kind", "cube", "other"],
                name="pair_is_reviewed_once_for_each_kind",
                condition=models.Q(other__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "kind", "status", "-id"], name="review_newest_first"),
            models.Index(fields=["tenant", "cube"], name="review_by_cube"),
            models.Index(fields=["tenant", "other"], name="review_by_other", condition=models.Q(other__isnull=False)),
        ]


class PiiFinding(TenantModel):
    """A place with personal data in one version, never its value. It is deleted with the content of its version.

    leaf: number of the text within the field (metadata: names and values; tags); begins, ends: code points of that
    text. detector: version of the detector.
    """

    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    version = models.ForeignKey(
        CubeVersion, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    field = models.CharField(max_length=10, choices=[(field, field) for field in PiiField])
    leaf = models.PositiveIntegerField()
    kind = models.CharField(max_length=20, choices=[(kind, kind) for kind in PiiKind])
    begins = models.PositiveIntegerField()
    ends = models.PositiveIntegerField()
    rule = models.CharField(max_length=40)
    detector = models.CharField(max_length=40)
    status = models.CharField(max_length=12, choices=[(status, status) for status in ReviewStatus])

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(ends__gte=models.F("begins")), name="finding_ends_after_it_begins"
            )
        ]
        indexes = [
            models.Index(fields=["tenant", "version"], name="finding_by_version"),
            models.Index(fields=["tenant", "cube"], name="finding_by_cube"),
        ]
