"""Working sets of conversations, and the counters from which predictors learn."""

from django.db import models
from django.db.models.functions import Now

from governance.models.base import TenantModel
from governance.models.persona import Persona
from vault.models.layers import Stream


class WorkingSet(TenantModel):
    """The memories that were preloaded for the next turn of a stream. position: of the page after which they were.

    items: [{memory_id, reason, score, tokens}] in the order of the set, ids and numbers only.
    """

    persona = models.ForeignKey(
        Persona, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    stream = models.ForeignKey(
        Stream, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    position = models.PositiveIntegerField()
    items = models.JSONField(default=list)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "stream"], name="working_set_is_one_for_stream")]
        indexes = [models.Index(fields=["tenant", "persona", "-made_at"], name="working_set_newest_first")]


class PredictorCount(TenantModel):
    """The memories of a persona that a predictor preloaded, and those of them that the next turn used.

    predictor: empty for used memories that none had preloaded.
    """

    persona = models.ForeignKey(
        Persona, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    predictor = models.CharField(max_length=20, blank=True)
    preloaded = models.PositiveIntegerField(default=0, db_default=0)
    used = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "persona", "predictor"], name="predictor_is_counted_once_for_persona"
            )
        ]
