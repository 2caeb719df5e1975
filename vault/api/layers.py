"""personas/{id}/stm/, segments/ … settings/ of the REST API, and layers/settings/ of the tenant."""

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.descriptions import ONCE, PAGE, PageSchema, describe, page_of
from governance.api.fields import BROKEN, NumberField, StrictSerializer
from governance.api.jobs import JobPromiseSchema
from governance.api.pages import CursorPages, show_page, whole_list
from governance.api.schema import RoundedField, Schema
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.pages import First
from governance.personas.services import persona_update_ask
from governance.text_values import read_uuid
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.layers.constants import constants_get, constants_set, tenant_constants_get, tenant_constants_set
from vault.layers.persona import (
    EntryView,
    ProfileField,
    entries_list,
    profile_get,
    profile_set,
    traits_list,
)
from vault.layers.replay import replay_later
from vault.layers.rules import NAMES, RANGES, WHOLE, merge_constants
from vault.layers.selectors import SegmentView, segments_list, stm_list
from vault.layers.working_set import BUDGET, STABLE, TEXT, WORKING, working_set
from vault.scheduler.replacement import ReplacementName
from vault.scheduler.rules import HIGHEST_WEIGHT, LEAST_WEIGHT, PREDICTORS
from vault.scheduler.selectors import scheduler_state, working_sets_replay
from vault.scheduler.services import replacement_set
from vault.vocabulary import EntryQueue

MOST_ENTRIES = 1_000
STREAM = OpenApiParameter("stream", str, description="Id of a stream: of its pages alone.")
SESSION = OpenApiParameter("session_id", str, description="Of the set; by default, that with the newest turn.")
REPLAY = OpenApiParameter(
    "replay", int, description=f"Tokens, 1 to {BUDGET}: replay the last turns with each policy, in sets of this size."
)
EVICTED = OpenApiParameter("evicted", bool, description="true: the segments that left, whose memories are archived.")


def _make_number_field(name: str) -> NumberField:
    low, high = RANGES[name]
    whole = "A whole number, " if name in WHOLE else ""
    return NumberField(
        required=False, allow_null=True, min_value=low, max_value=high, help_text=f"{whole}{low:g} to {high:g}."
    )


ConstantsInput = type("ConstantsInput", (StrictSerializer,), {name: _make_number_field(name) for name in NAMES})
ConstantsSchema = type("ConstantsSchema", (Schema,), {name: serializers.FloatField() for name in NAMES})


class SideSchema(Schema):
    memory_id = serializers.UUIDField(source="cube.id")
    content = serializers.CharField(source="words.content")


class PageOfStreamSchema(Schema):
    id = serializers.UUIDField(source="row.id")
    stream = serializers.UUIDField(source="row.stream_id")
    position = serializers.IntegerField(source="row.position", help_text="In its stream, from 1.")
    query = SideSchema(allow_null=True)
    response = SideSchema(allow_null=True)
    at = serializers.DateTimeField(source="row.at")
    chain = serializers.UUIDField(
        source="row.chain", allow_null=True, help_text="The first page of its topic; null until it was placed."
    )
    meta = serializers.CharField(help_text="What the topic is about.")


class SegmentSchema(Schema):
    id = serializers.UUIDField(source="row.id")
    summary = serializers.CharField()
    keywords = serializers.ListField(child=serializers.CharField())
    heat = RoundedField(help_text="α·visits + β·pages not promoted + γ·recency, at this moment.")
    visits = serializers.IntegerField(source="row.visits")
    pages = serializers.IntegerField()
    unpromoted = serializers.IntegerField(help_text="Pages that were not distilled yet.")
    recency = RoundedField(help_text="γ·exp(−Δt / μ)")
    visited_at = serializers.DateTimeField(source="row.visited_at")
    state = serializers.ChoiceField(choices=["resident", "evicted"])

    def make_summary(self, view: SegmentView) -> str:
        return " ".join(view.summary)

    def make_recency(self, view: SegmentView) -> float:
        return view.parts[2]

    def make_state(self, view: SegmentView) -> str:
        return "evicted" if view.row.evicted_at else "resident"


class ProfileFieldSchema(Schema):
    name = serializers.CharField()
    value = serializers.CharField()
    memory_id = serializers.UUIDField(
        source="view.cube.id", allow_null=True, help_text="null for an agent's, which is no memory."
    )
    updated_at = serializers.DateTimeField(source="view.cube.updated_at", allow_null=True)


class QueueEntrySchema(Schema):
    memory_id = serializers.UUIDField(source="view.cube.id")
    content = serializers.CharField(source="view.words.content")
    action = serializers.ChoiceField(source="row.action", choices=["add", "update", "delete"])
    reason = serializers.CharField(source="row.reason", help_text="Why it was added, and what it replaced.")
    created_at = serializers.DateTimeField(source="row.created_at")


class ProfileSchema(Schema):
    profile = ProfileFieldSchema(many=True)
    knowledge = QueueEntrySchema(many=True, help_text="Newest first.")
    agent = QueueEntrySchema(many=True, help_text="What the assistant recommended or promised, newest first.")


class TraitStepSchema(Schema):
    at = serializers.DateTimeField()
    level = serializers.IntegerField()
    confidence = serializers.FloatField()
    pages = serializers.IntegerField()


class TraitSchema(Schema):
    dimension = serializers.CharField(source="dimension.code")
    name = serializers.CharField(source="dimension.name")
    group = serializers.ChoiceField(source="dimension.group", choices=["personality", "alignment", "interest"])
    definition = serializers.CharField(source="dimension.definition")
    level = serializers.IntegerField(help_text="1, the opposite, to 5.")
    confidence = serializers.FloatField(help_text="0 to 1.")
    evidence = serializers.ListField(child=serializers.UUIDField(), help_text="The pages that it rests on.")
    history = TraitStepSchema(many=True)


PROFILE_INPUT = {
    "application/json": {
        "type": "object",
        "description": "Fields by name: a text of at most 200 characters, or null to remove one.",
        "additionalProperties": {"type": "string", "nullable": True, "maxLength": 200},
    }
}


class WorkingItemSchema(Schema):
    memory_id = serializers.UUIDField(source="view.cube.id")
    tokens = serializers.IntegerField()
    reason = serializers.ChoiceField(
        choices=["profile", "pinned", *PREDICTORS, "kept", "hot_topic", "new_entry"],
        help_text="Why it is there; also the name of the predictor that preloaded it.",
    )
    score = serializers.FloatField(help_text="0 to 1, within its tier.")
    form = serializers.ChoiceField(choices=[TEXT], help_text="In which it enters a prompt.")
    tier = serializers.ChoiceField(
        choices=[STABLE, WORKING], help_text="`stable` comes first and does not depend on the last turn."
    )


class PredictorSchema(Schema):
    name = serializers.ChoiceField(choices=[*PREDICTORS, "kept"])
    weight = serializers.FloatField(help_text=f"{LEAST_WEIGHT:g} to {HIGHEST_WEIGHT:g}; follows the counts.")
    preloaded = serializers.IntegerField()
    used = serializers.IntegerField(help_text="Of those preloaded, by the next turn.")


class ReplayedSchema(Schema):
    replacement = serializers.ChoiceField(choices=list(ReplacementName))
    turns = serializers.IntegerField(help_text="Those that cite memories, of the last 60.")
    hits = RoundedField(help_text="Mean share of a turn's cited memories that were in the set before the question.")
    recent = RoundedField(help_text="The same for the newest memories, with the same budget.")
    found = RoundedField(help_text="The same for the results of the last search.")
    tokens = RoundedField(help_text="Mean size of the set.")
    saved_tokens = serializers.IntegerField(
        help_text="Of the cited memories that were in the set, all turns together: no turn had to fetch them."
    )
    saved_seconds = serializers.FloatField(
        allow_null=True,
        help_text="Time to read the saved tokens, at the speed at which this call read the present set; null if that "
        "is empty.",
    )


class WorkingSetSchema(PageSchema):
    results = WorkingItemSchema(many=True)
    replacement = serializers.ChoiceField(choices=list(ReplacementName))
    predictors = PredictorSchema(many=True)
    missed = serializers.IntegerField(help_text="Memories that a turn used and nothing had preloaded.")
    replays = ReplayedSchema(many=True, help_text="Of each policy; empty without `replay`.")


class ReplacementInput(StrictSerializer):
    replacement = serializers.ChoiceField(
        choices=list(ReplacementName),
        allow_null=True,
        help_text="Which memories stay longest; null: the tenant's choice.",
    )


class ReplacementSchema(Schema):
    replacement = serializers.ChoiceField(choices=list(ReplacementName))


class ReplayInput(StrictSerializer):
    settings = ConstantsInput(help_text="What is tried instead of the persona's constants.")


class StmView(ApiView):
    @of_memories("personas_stm", page_of(PageOfStreamSchema), parameters=[STREAM, *PAGE], may=[404])
    def get(self, request: Request, persona_id: UUID) -> object:
        """List the short-term pages of a persona, newest first."""
        pages = CursorPages(request, also_known=("stream",))
        given = request.query_params.get("stream")
        stream = read_uuid(given, "stream", "an id is needed") if given is not None else None
        found = stm_list(actor=self.actor(), persona_id=persona_id, pages=pages, stream_id=stream)
        return pages.envelope(found)


class SegmentsView(ApiView):
    @of_memories("personas_segments", page_of(SegmentSchema), parameters=[EVICTED, *PAGE], may=[404])
    def get(self, request: Request, persona_id: UUID) -> object:
        """List the mid-term segments of a persona, the hottest first."""
        return show_page(
            self, segments_list, ordering="-warmth", persona_id=persona_id, evicted=flag(request, "evicted")
        )


class ProfileView(ApiView):
    @of_memories("personas_profile", ProfileSchema, may=[404])
    def get(self, request: Request, persona_id: UUID) -> Response:
        """Read the profile of a persona, and its queues of knowledge."""
        actor = self.actor()
        with acting(actor):
            found = profile_get(actor=actor, persona_id=persona_id)
            refuse_unknown_parameters(request)
            return Response(_profile_json(actor, persona_id, found))

    @of_memories("personas_profile_update", ProfileSchema, request=PROFILE_INPUT, may=[404, 423])
    def patch(self, request: Request, persona_id: UUID) -> Response:
        """Write fields of a profile, or remove them with null."""
        actor = self.actor()
        with self.after(lambda: persona_update_ask(actor=actor, persona_id=persona_id)):
            refuse_unknown_parameters(request)
            values = _read_texts(request)
        with acting(actor):
            found = profile_set(actor=actor, persona_id=persona_id, values=values)
            return Response(_profile_json(actor, persona_id, found))


class TraitsView(ApiView):
    @describe("personas_traits", page_of(TraitSchema), may=[404])
    def get(self, request: Request, persona_id: UUID) -> object:
        """Read the traits of a persona, in the dimensions (of 90) that have evidence."""
        return whole_list(traits_list(actor=self.actor(), persona_id=persona_id))


class WorkingSetView(ApiView):
    @of_memories("personas_working_set", WorkingSetSchema, parameters=[SESSION, REPLAY], may=[404])
    def get(self, request: Request, persona_id: UUID) -> object:
        """Read the memories that the next turn of a persona probably needs, at most 10,000 tokens."""
        actor, session = self.actor(), request.query_params.get("session_id", "")
        began = time.perf_counter()
        found = working_set(actor=actor, persona_id=persona_id, session=session)
        seconds, tokens = time.perf_counter() - began, sum(item.tokens for item in found)
        refuse_unknown_parameters(request, "session_id", "replay")
        budget = _read_replay(request)
        state = scheduler_state(actor=actor, persona_id=persona_id)
        outcomes = working_sets_replay(actor=actor, persona_id=persona_id, budget=budget) if budget else {}
        replays = [
            {**vars(outcome), "replacement": name, "saved_seconds": outcome.saved_seconds(seconds, tokens)}
            for name, outcome in outcomes.items()
        ]
        return whole_list(found) | vars(state) | {"replays": replays}

    @describe("personas_working_set_update", ReplacementSchema, request=ReplacementInput, may=[404])
    def patch(self, request: Request, persona_id: UUID) -> object:
        """Choose the policy by which memories leave a persona's full working sets."""
        actor = self.actor()
        name = self.read_body(lambda: persona_update_ask(actor=actor, persona_id=persona_id))["replacement"]
        chosen = replacement_set(actor=actor, persona_id=persona_id, name=name or "")
        return {"replacement": chosen}


class ReplayView(ApiView):
    @describe("personas_replay", JobPromiseSchema, status=202, request=ReplayInput, parameters=[ONCE], may=[404])
    def post(self, request: Request, persona_id: UUID) -> Response:
        """Replay the history of a persona under other constants; the job's result compares both."""
        actor = self.actor()

        def ask() -> None:
            constants_get(actor=actor, persona_id=persona_id)

        def call() -> object:
            ask()
            given = self.read_body()["settings"]
            values = {name: value for name, value in given.items() if value is not None}
            return replay_later(actor=actor, persona_id=persona_id, values=values)

        return self.post_once(call, ask=ask)


class ConstantsView(ApiView):
    @describe("personas_settings", ConstantsSchema, may=[404])
    def get(self, request: Request, persona_id: UUID) -> object:
        """Read the constants of a persona's layers."""
        return constants_get(actor=self.actor(), persona_id=persona_id)

    @describe("personas_settings_update", ConstantsSchema, request=ConstantsInput, may=[404])
    def patch(self, request: Request, persona_id: UUID) -> object:
        """Set constants of a persona's layers; null resets a constant."""
        actor = self.actor()
        values = self.read_body(lambda: persona_update_ask(actor=actor, persona_id=persona_id))
        return constants_set(actor=actor, persona_id=persona_id, values=values)


class TenantConstantsView(ApiView):
    @describe("layers_settings", ConstantsSchema)
    def get(self, request: Request) -> object:
        """Read the tenant's constants of the layers, which apply to personas without their own."""
        return merge_constants(tenant_constants_get(actor=self.actor()))

    @describe("layers_settings_update", ConstantsSchema, request=ConstantsInput)
    def patch(self, request: Request) -> object:
        """Set constants for the tenant; null resets a constant. A persona's own constants take precedence."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        values = self.read_body()
        return merge_constants(tenant_constants_set(actor=actor, values=values))


def _read_replay(request: Request) -> int:
    """Return the budget of a replay; 0 for none. Raises Invalid."""
    text = request.query_params.get("replay")
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(BUDGET)) and 1 <= int(text) <= BUDGET):
        raise Invalid(errors=[FieldError("replay", f"1 to {BUDGET}")])
    return int(text)


def _profile_json(actor: Actor, persona_id: UUID, found: Sequence[ProfileField]) -> dict[str, Any]:
    def queue(name: EntryQueue) -> Sequence[EntryView]:
        return entries_list(actor=actor, persona_id=persona_id, queue=name, pages=First(MOST_ENTRIES))

    return ProfileSchema.of(profile=found, knowledge=queue(EntryQueue.KNOWLEDGE), agent=queue(EntryQueue.AGENT))


def _read_texts(request: Request) -> dict[str, str | None]:
    body = request.data
    if not isinstance(body, dict) or not body:
        raise Invalid(errors=[FieldError("body", "an object of fields and texts is needed")])
    for name, value in body.items():
        if value is not None and (not isinstance(value, str) or BROKEN.search(value) or BROKEN.search(name)):
            raise Invalid(errors=[FieldError(name, "a text or null is needed")])
    return dict(body)
