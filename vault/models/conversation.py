from django.db import models
from django.db.models.functions import Now

from governance.models.base import TenantModel
from governance.models.persona import Persona
from governance.models.tenant import Member
from vault.models.cube import Cube
from vault.vocabulary import TurnEnd


class Conversation(TenantModel):
    """A member's chat. Its turns are cubes of the member's private namespace; its title is sealed."""

    member = models.ForeignKey(
        Member, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    persona = models.ForeignKey(
        Persona, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    agent_persona = models.ForeignKey(
        Persona, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    model = models.CharField(max_length=100, blank=True, default="")
    key_id = models.UUIDField(null=True)  # the API key that began it: a bound key uses these alone
    sealed_title = models.BinaryField()  # as a person gave it; empty: the first question is the title
    excluded = models.JSONField(default=list)  # ids of memories that its answers leave out
    raises_goals = models.BooleanField(default=True)
    updated_at = models.DateTimeField(db_default=Now())
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["tenant", "member", "-id"], name="conversation_newest_first")]


class Turn(TenantModel):
    """One question and its answer; both are cubes. citations: [{memory_id, marker, score}], ids and numbers only.

    retrieved: [{memory_id, score, parts, layer, tokens}] of all search results, best first. goal_id: the goal that the
    answer raised. failed_models: names of the models that were asked first and failed. cost: of the tokens, in
    `currency`.
    """

    conversation = models.ForeignKey(
        Conversation, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    position = models.PositiveIntegerField()
    question = models.ForeignKey(
        Cube, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    answer = models.ForeignKey(
        Cube, null=True, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    model = models.CharField(max_length=100)
    citations = models.JSONField(default=list)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0, db_default=0)  # among prompt_tokens
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0, db_default=0)
    currency = models.CharField(max_length=3, blank=True, default="", db_default="")
    failed_models = models.JSONField(default=list, db_default=[])
    intent = models.CharField(max_length=12, blank=True, default="")
    retrieved = models.JSONField(default=list)
    goal_id = models.UUIDField(null=True)
    end = models.CharField(max_length=12, choices=[(end, end) for end in TurnEnd])

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "question"], name="turn_by_question"),
            models.Index(fields=["tenant", "answer"], name="turn_by_answer"),
            # A partial index of few rows: each turn looks up the goals raised in its conversation.
            models.Index(
                fields=["tenant", "conversation"], name="turn_with_goal", condition=models.Q(goal_id__isnull=False)
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "conversation", "position"], name="turn_position_is_unique")
        ]
