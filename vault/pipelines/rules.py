"""The steps of a pipeline: their arguments, and references to the results of earlier steps. Pure.

`$2.ids` names the memories of the second step, `$2.text` its text.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from governance.errors import FieldError, Invalid
from governance.policies.rules.documents import message_of
from vault.cubes.filters import BROKEN
from vault.holds.services import LONGEST_REASON
from vault.listing.bulk import MOST_CHOSEN
from vault.vocabulary import Layer

MOST_STEPS = 20
MOST_DAYS = 3650
LONGEST_LABEL = 200
IDS = re.compile(r"\$(\d{1,2})\.ids")
TEXT = re.compile(r"\$(\d{1,2})\.text")


def _read_id(value: object) -> UUID | str:
    """Return an id, or a reference as it is. Raises PydanticCustomError."""
    if isinstance(value, UUID) or (isinstance(value, str) and IDS.fullmatch(value)):
        return value
    try:
        return UUID(str(value))
    except ValueError:
        raise PydanticCustomError("reference", "an id, or a reference such as $1.ids, is needed") from None


def _refuse_broken(value: str) -> str:
    """Return a text that can be stored as it is. Raises PydanticCustomError."""
    if BROKEN.search(value):
        raise PydanticCustomError("broken_text", "no NUL and no lone surrogates")
    return value


Ids = Annotated[
    tuple[Annotated[UUID | str, PlainValidator(_read_id)], ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    Field(min_length=1, max_length=MOST_CHOSEN),
]
Text = Annotated[str, AfterValidator(_refuse_broken)]
Label = Annotated[Text, Field(min_length=1, max_length=LONGEST_LABEL)]
Days = Annotated[int, Field(ge=1, le=MOST_DAYS)]


class _Step(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class ListStep(_Step):
    """The newest matching memories. since_days: only those stored since then; inactive: those to restore."""

    op: Literal["list"]
    filters: dict[str, Any] | None = None
    since_days: Days | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_CHOSEN)] = MOST_CHOSEN
    inactive: bool = False


class SearchStep(_Step):
    """The memories that match a question, without those that are merely the nearest."""

    op: Literal["search"]
    query: Annotated[Text, Field(min_length=1, max_length=1000)]
    filters: dict[str, Any] | None = None
    since_days: Days | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class ScreenStep(_Step):
    """Those of the memories in which personal data is found."""

    op: Literal["screen"]
    ids: Ids


class SummariseStep(_Step):
    """The most typical sentences of the memories, as a text."""

    op: Literal["summarise"]
    ids: Ids
    sentences: Annotated[int, Field(ge=1, le=20)] = 5


class AddStep(_Step):
    """A new memory. key: of an entry of a pipeline cache, which replaces the one before."""

    op: Literal["add"]
    content: Annotated[Text, Field(min_length=1, max_length=4000)]
    title: Annotated[Text, Field(max_length=LONGEST_LABEL)] = ""
    namespace: Label | None = None
    tags: Annotated[tuple[Text, ...], Field(max_length=20)] = ()
    key: Label | None = None


class FuseStep(_Step):
    op: Literal["fuse"]
    ids: Ids
    reason: Annotated[Text, Field(max_length=LONGEST_REASON)] = ""


class CopyStep(_Step):
    op: Literal["copy"]
    ids: Ids
    namespace: Label


class MoveStep(CopyStep):
    op: Literal["move"]  # type: ignore[assignment]


class TagStep(_Step):
    op: Literal["tag"]
    ids: Ids
    tags: Annotated[tuple[Text, ...], Field(min_length=1, max_length=20)]


class ExpireStep(_Step):
    """An expiry at a time or after some days; without either, none."""

    op: Literal["expire"]
    ids: Ids
    expires_at: datetime | None = None
    in_days: Days | None = None


class PromoteStep(_Step):
    op: Literal["promote"]
    ids: Ids
    layer: Layer


class FreezeStep(_Step):
    op: Literal["freeze"]
    ids: Ids
    reason: Annotated[Text, Field(min_length=1, max_length=LONGEST_REASON)]


class PlainStep(_Step):
    op: Literal["archive", "activate", "restore", "delete", "unfreeze", "cool", "warm"]
    ids: Ids


class BuildStep(_Step):
    """The next minor version of a pack, built by a job that the run requests."""

    op: Literal["build"]
    ids: Ids
    pack: UUID
    changelog: Annotated[Text, Field(max_length=2000)] = ""


Read = ListStep | SearchStep | ScreenStep | SummariseStep
Bulk = MoveStep | TagStep | ExpireStep | PromoteStep | FreezeStep | PlainStep
Step = Read | AddStep | FuseStep | CopyStep | Bulk | BuildStep
READS = (ListStep, SearchStep, ScreenStep, SummariseStep)
BULK = (MoveStep, TagStep, ExpireStep, PromoteStep, FreezeStep, PlainStep)
_STEPS = TypeAdapter(Annotated[tuple[Annotated[Step, Field(discriminator="op")], ...], Field(max_length=MOST_STEPS)])
OPS: tuple[str, ...] = tuple(op for kind in get_args(Step) for op in get_args(kind.model_fields["op"].annotation))


def steps_read(given: object) -> tuple[Step, ...]:
    """Parse the steps of a pipeline.

    Raises Invalid for unknown operations and arguments, for a reference to a step that is not an earlier one or has no
    such result, and for a reading step after a change.
    """
    try:
        steps: tuple[Step, ...] = _STEPS.validate_python(given)
    except ValidationError as error:
        faults = [FieldError(_path(fault["loc"]), message_of(fault)) for fault in error.errors()]
        raise Invalid(errors=faults) from error
    if not steps:
        raise Invalid(errors=[FieldError("steps", f"1 to {MOST_STEPS} steps are needed")])
    faults = [fault for number in range(len(steps)) for fault in _check_step(steps, number)]
    if faults:
        raise Invalid(errors=faults)
    return steps


def steps_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return the steps as the JSON that `steps_read` parses."""
    return [step.model_dump(mode="json", exclude_unset=True) for step in steps]


def ids_of(step: Step) -> tuple[UUID | str, ...]:
    """Return the ids and references of a step; none for one that finds or adds memories."""
    return getattr(step, "ids", ())


def reference_number(reference: str) -> int:
    """Return the number of the step, from 1, whose memories a reference names."""
    return int(reference[1 : reference.index(".")])


def text_numbers(step: Step) -> list[int]:
    """Return the numbers of the steps, from 1, whose texts a step contains."""
    return [int(number) for number in TEXT.findall(step.content)] if isinstance(step, AddStep) else []


def fill_texts(template: str, texts: Sequence[str]) -> str:
    """Replace the references to texts in a template. texts: of all steps before."""
    return TEXT.sub(lambda match: texts[int(match[1]) - 1], template)


def _check_step(steps: Sequence[Step], number: int) -> list[FieldError]:
    """Return the faults of a step that depend on the steps before. number: from 0."""
    step = steps[number]
    faults = []
    if isinstance(step, READS) and number and not isinstance(steps[number - 1], READS):
        message = "reading steps come before the steps that change memories"
        faults.append(FieldError(f"steps.{number}.op", message))
    wanted = [reference_number(item) for item in ids_of(step) if isinstance(item, str)]
    faults += [
        FieldError(f"steps.{number}.ids", f"${other}.ids: only the memories of an earlier step can be named")
        for other in wanted
        if not 1 <= other <= number
    ]
    faults += [
        FieldError(f"steps.{number}.content", f"${other}.text: only an earlier step of summarise has a text")
        for other in text_numbers(step)
        if not (1 <= other <= number and isinstance(steps[other - 1], SummariseStep))
    ]
    return faults


def _path(location: Sequence[int | str]) -> str:
    """Return the path of a fault, without the names of operations that the parser puts into it."""
    parts = [str(part) for part in location[:1]] + [str(part) for part in location[2:]]
    return ".".join(["steps", *parts])
