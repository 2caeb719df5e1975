"""Caches and adapters: what memories of type `activation` and `parameter` have beside their text."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from governance.models.base import TenantModel
from governance.models.persona import Persona
from vault.models.cube import Cube
from vault.vocabulary import Composition, MemoryType, ProposalState


class MemoryForm(TenantModel):
    """The payload of a KV cache or an adapter, sealed in the blob store under this row's id.

    fingerprint: of the model that it is for. digest, length: of the sealed bytes. parents: the memories, in the order
    of the block; their versions are rows of CubeSource. subjects: the data subjects of the parents, under whose keys
    the payload is sealed, one inside the other. persona: on which it is mounted; sealed_task, task_token: the name of
    the task on which it is mounted, and its keyed token. composition: of a cache behind another one; quality: of each
    composition, as measured with its model. costs: measured, in seconds. pack, pack_digest: of the pack that brought an
    adapter, and of the adapter in its file.
    """

    cube = models.ForeignKey(Cube, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    model = models.CharField(max_length=100)
    fingerprint = models.CharField(max_length=64)
    digest = models.BinaryField(max_length=32)
    length = models.BigIntegerField()
    tokens = models.PositiveIntegerField()
    seconds = models.FloatField()
    parents = ArrayField(models.UUIDField())
    subjects = ArrayField(models.UUIDField(), default=list)
    persona = models.ForeignKey(
        Persona, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    is_pinned = models.BooleanField(default=False, db_default=False)
    costs = models.JSONField(default=dict)
    report = models.JSONField(null=True)
    approved_by = models.UUIDField(null=True)
    approved_at = models.DateTimeField(null=True)
    uses = models.PositiveIntegerField(default=0, db_default=0)
    saved_tokens = models.BigIntegerField(default=0, db_default=0)
    saved_seconds = models.FloatField(default=0.0, db_default=0.0)
    pack = models.CharField(max_length=130, blank=True, default="", db_default="")
    pack_digest = models.CharField(max_length=64, blank=True, default="", db_default="")
    composition = models.CharField(
        max_length=24,
        choices=[(choice, choice) for choice in Composition],
        default=Composition.EXACT,
        db_default=Composition.EXACT,
    )
    quality = models.JSONField(default=dict, db_default={})
    task_token = models.BigIntegerField(null=True)
    sealed_task = models.BinaryField(default=bytes, db_default=b"")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "cube"], name="form_is_one_for_cube")]
        indexes = [
            models.Index(
                fields=["tenant", "persona"], name="form_by_persona", condition=models.Q(persona__isnull=False)
            ),
            models.Index(
                fields=["tenant", "task_token"], name="form_by_task", condition=models.Q(task_token__isnull=False)
            ),
        ]


class FormProposal(TenantModel):
    """A conversion that was proposed to those who may read all its memories.

    kind: the type that the memories get; `plaintext` erases the cache or adapter `form_id`. basis: digest of kind,
    persona and memories with their versions, so that nothing is proposed twice. figures: why it was proposed. job_id:
    of an accepted proposal. decided_by: None if the product made the cache by itself.
    """

    kind = models.CharField(max_length=12, choices=[(kind, kind) for kind in MemoryType])
    persona = models.ForeignKey(
        Persona, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    memories = ArrayField(models.UUIDField())
    form_id = models.UUIDField(null=True)
    basis = models.BinaryField(max_length=32)
    figures = models.JSONField(default=dict)
    status = models.CharField(max_length=10, choices=[(state, state) for state in ProposalState])
    job_id = models.UUIDField(null=True)
    decided_by = models.UUIDField(null=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "basis"], name="form_is_proposed_once")]
        indexes = [models.Index(fields=["tenant", "status", "-id"], name="form_proposal_newest_first")]
