"""Pipelines: a member's own, each with its steps in words, a dry run, and a run by hand."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.denials import record_and_return_denial
from governance.errors import DomainError, Forbidden, Invalid, Unavailable
from governance.pages import First
from governance.vocabulary import Permission, Topic
from governance.web.explanations import detail_of, explanation_of
from governance.web.faults import Fault, fault_texts
from governance.web.page_forms import PageForm
from governance.web.pages import draw, form_page, post_page, safe_page, see_other
from governance.web.undo import put_message
from vault.listing.selectors import memories_choose, paths_list
from vault.pipelines.examples import EXAMPLES
from vault.pipelines.rules import MOST_STEPS, steps_json, steps_read
from vault.pipelines.runs import StepResult, pipeline_run
from vault.pipelines.services import (
    LONGEST_NAME,
    PipelineDraft,
    StoredPipeline,
    pipeline_create,
    pipeline_get,
    pipeline_remove,
    pipeline_update,
    pipelines_list,
)
from vault.store.selectors import packs_list
from vault.web.pipeline_forms import ARGUMENTS, OPERATIONS, StepForm, argument_label, move_up, remove_step

CHANGES = frozenset({"add", "up", "remove", "json"})  # actions that only change the form
MOST_PACKS = 200  # to choose from
NAMED = 20  # memories of a result that the page names
LONGEST_WORDS = 120  # characters of a memory in a result
LONGEST_DOCUMENT = 100_000
EXAMPLE_WORDS: dict[str, tuple[Promise, Promise]] = {
    "digest": (gettext_lazy("Weekly digest"), gettext_lazy("Sums up the notes of a week in a new memory.")),
    "import": (
        gettext_lazy("Import, screen, review"),
        gettext_lazy("Finds personal data in imported memories, and tags them for a review."),
    ),
    "merge": (
        gettext_lazy("Merge the notes of two people"),
        gettext_lazy("Copies the notes of both to a shared namespace, and fuses the copies."),
    ),
    "archive": (gettext_lazy("Archive a project"), gettext_lazy("Tags and archives all memories of a project.")),
    "pack": (gettext_lazy("Refresh a pack"), gettext_lazy("Builds the next version of a pack from a namespace.")),
}


@dataclass(frozen=True)
class ShownResult:
    """The result of a step in words. memories: the first NAMED that can be opened, with their first words."""

    words: Promise
    effect: str
    memories: tuple[tuple[UUID, str], ...]
    text: str
    job_id: UUID | None
    notes: tuple[str, ...]


class PipelineForm(PageForm):
    """The name of a pipeline, and its steps, where the reader writes them as JSON."""

    name = forms.CharField(label=gettext_lazy("Name"), required=False, max_length=LONGEST_NAME)
    steps = forms.CharField(
        label=gettext_lazy("Steps, as JSON"),
        max_length=LONGEST_DOCUMENT,
        help_text=gettext_lazy(
            "$1.ids are the memories of step 1, $2.text is the text of step 2. Replace paths by your own. Steps that "
            "read come first."
        ),
        widget=forms.Textarea(attrs={"rows": 10, "class": "form-control mono", "spellcheck": "false"}),
    )

    def __init__(self, data: QueryDict | None = None, *, name: str = "", document: str | None = None) -> None:
        super().__init__(data, auto_id="%s", initial={"name": name, "steps": document})
        if document is None:
            del self.fields["steps"]

    def clean_steps(self) -> object:
        try:
            document: object = json.loads(self.cleaned_data["steps"])
        except (ValueError, RecursionError):
            raise forms.ValidationError(_("Write the steps as a JSON list.")) from None
        return document.get("steps") if isinstance(document, dict) else document


@dataclass(frozen=True)
class Written:
    """The sent or first forms: that of the pipeline, and without JSON in it, a form for each step."""

    form: PipelineForm
    steps: tuple[StepForm, ...] = ()

    @property
    def has_errors(self) -> bool:
        return any(form.errors for form in (self.form, *self.steps))

    def read_steps(self) -> object:
        """Return the steps. Raises Invalid where a form has faults, which are shown in it."""
        if [form for form in (self.form, *self.steps) if not form.is_valid()]:
            raise Invalid(errors=[])
        values = self.form.cleaned_data
        return values["steps"] if "steps" in values else [form.step() for form in self.steps]


@safe_page
def pipelines(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List the member's pipelines, and examples to start from."""
    authorize(actor, Permission.MEMORY_READ)
    rows = [(row, [OPERATIONS[step.op] for step in row.steps]) for row in pipelines_list(actor=actor)]
    examples = [(key, name, meaning) for key, (name, meaning) in EXAMPLE_WORDS.items()]
    context = {
        "rows": rows,
        "examples": examples,
        "may_schedule": is_allowed(actor, Permission.OPERATIONS_MANAGE),
        "may_audit": is_allowed(actor, Permission.AUDIT_READ),
        "run_kind": Topic.PIPELINE_RUN,
    }
    return draw(request, "vault/pipelines/pipelines.html", context)


@form_page
def pipeline_new(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Write a pipeline, from an example if the address names one. Dry run and run work before it is saved."""
    authorize(actor, Permission.MEMORY_READ)
    if request.method == "POST":
        return _answer(request, actor, None)
    key = request.GET.get("example", "")
    name = str(EXAMPLE_WORDS[key][0]) if key in EXAMPLE_WORDS else ""
    return _draw(request, actor, None, _open(request, actor, name, EXAMPLES.get(key, [{"op": "list"}])))


@form_page
def pipeline(request: HttpRequest, actor: Actor, pipeline_id: UUID) -> HttpResponseBase:
    """Show and change a pipeline. `action` of a POST: save, dry or run; or add, up:N, remove:N or json, which only
    change the form."""
    found = pipeline_get(actor=actor, pipeline_id=pipeline_id)
    if request.method == "POST":
        return _answer(request, actor, found)
    return _draw(request, actor, found, _open(request, actor, found.name, steps_json(found.steps)))


@post_page
def remove(request: HttpRequest, actor: Actor, pipeline_id: UUID) -> HttpResponseBase:
    pipeline_remove(actor=actor, pipeline_id=pipeline_id)
    return see_other(reverse("pipelines"))


def _answer(request: HttpRequest, actor: Actor, found: StoredPipeline | None) -> HttpResponseBase:
    """Save, try or run what the form has. Faults of the steps are shown beside them (422)."""
    written, action = _read_form(request, actor), request.POST.get("action", "save")
    try:
        if action.partition(":")[0] in CHANGES:
            return _draw(request, actor, found, _change_form(request, actor, written, action))
        document = written.read_steps()
        if action == "save":
            saved = _save(actor, found, PipelineDraft(written.form.cleaned_data["name"], document))
            put_message(request, _("Pipeline saved"))
            return see_other(reverse("pipeline", args=[saved.id]))
        is_dry = action != "run"
        steps = steps_read(document)
        of = found.id if found and found.steps == steps else None
        results = pipeline_run(actor=actor, steps=steps, pipeline_id=of, is_dry=is_dry)
    except Unavailable:
        raise
    except Invalid as failure:
        named = [error for error in failure.errors if error.field == "name"]
        for error in named:
            written.form.blame_field(error)
        faults = [_name_step(fault) for fault in fault_texts(error for error in failure.errors if error not in named)]
        if not faults and not written.has_errors:
            faults = [_make_fault(failure)]
        return _draw(request, actor, found, written, faults=faults, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    except DomainError as failure:
        if isinstance(failure, Forbidden):
            recorded = record_and_return_denial(actor=actor, denial=failure, path=request.path)
            if recorded is not failure:
                raise recorded from failure
        return _draw(request, actor, found, written, faults=[_make_fault(failure)], status=failure.status)
    shown = [_describe_result(actor, result, is_dry=is_dry) for result in results]
    return _draw(request, actor, found, written, results=shown, is_dry=is_dry)


def _name_step(fault: Fault) -> Fault:
    """Return the fault of an argument with the number of its step and the label of its field."""
    first, _dot, rest = str(fault.label).partition(".")
    number, _dot, name = rest.partition(".")
    if first != "steps" or not number.isdigit():
        return fault
    label = _("Step %(number)s") % {"number": int(number) + 1}
    return replace(fault, label=f"{label}, {argument_label(name)}" if name else label)


def _make_fault(failure: DomainError) -> Fault:
    return Fault(explanation_of(failure).title, detail_of(failure), known=False)


def _save(actor: Actor, found: StoredPipeline | None, draft: PipelineDraft) -> StoredPipeline:
    if found is None:
        return pipeline_create(actor=actor, draft=draft)
    return pipeline_update(actor=actor, pipeline_id=found.id, changes={"name": draft.name, "steps": draft.steps})


def _draw(
    request: HttpRequest,
    actor: Actor,
    found: StoredPipeline | None,
    written: Written,
    *,
    status: int = HTTPStatus.OK,
    **more: Any,
) -> HttpResponseBase:
    context = {
        "found": found,
        "written": written,
        "operations": OPERATIONS,
        "places": paths_list(actor=actor),
        "may_schedule": found is not None and is_allowed(actor, Permission.OPERATIONS_MANAGE),
        "run_kind": Topic.PIPELINE_RUN,
        **more,
    }
    return draw(request, "vault/pipelines/pipeline.html", context, status=status)


def _open(request: HttpRequest, actor: Actor, name: str, steps: Sequence[dict[str, Any]]) -> Written:
    """Return the form of these steps: as JSON if the address asks for it."""
    if "json" in request.GET:
        return Written(PipelineForm(name=name, document=_write_document(steps)))
    packs = _list_packs(actor, [step["op"] for step in steps])
    shown = (StepForm(step["op"], number, packs, step=step) for number, step in enumerate(steps, start=1))
    return Written(PipelineForm(name=name), tuple(shown))


def _read_form(request: HttpRequest, actor: Actor) -> Written:
    """Return what was sent."""
    form = PipelineForm(request.POST, document=request.POST.get("steps"))
    if "steps" in form.fields:
        return Written(form)
    named = [op for op in request.POST.getlist("op") if op in OPERATIONS][:MOST_STEPS]
    packs = _list_packs(actor, named)
    return Written(form, tuple(StepForm(op, number, packs, request.POST) for number, op in enumerate(named, start=1)))


def _change_form(request: HttpRequest, actor: Actor, written: Written, action: str) -> Written:
    """Return the form with a step added, removed or moved up, or with its steps as JSON. Raises Invalid."""
    change, _colon, number = action.partition(":")
    steps = written.read_steps()
    assert isinstance(steps, list)
    name, at = written.form.cleaned_data["name"], int(number) if number.isdecimal() else 0
    if change == "json":
        return Written(PipelineForm(name=name, document=_write_document(steps)))
    if change == "up":
        steps = move_up(steps, at)
    elif change == "remove":
        steps = remove_step(steps, at)
    elif (op := request.POST.get("added", "")) in OPERATIONS and len(steps) < MOST_STEPS:
        takes = {"ids": [f"${len(steps)}.ids"]} if steps and "ids" in ARGUMENTS[op] else {}
        steps = [*steps, {"op": op, **takes}]
    return _open(request, actor, name, steps)


def _list_packs(actor: Actor, ops: Sequence[str]) -> list[tuple[str, str]]:
    """Return the ids and names of the tenant's packs, if a step builds a version and the actor may see them."""
    if "build" not in ops or not is_allowed(actor, Permission.STORE_MANAGE):
        return []
    return [(str(pack.id), pack.name) for pack, _version in packs_list(actor=actor, pages=First(MOST_PACKS))]


def _write_document(steps: Sequence[dict[str, Any]]) -> str:
    """Return the steps as JSON, one in each line."""
    lines = ",\n".join(f"  {json.dumps(step, ensure_ascii=False)}" for step in steps)
    return f"[\n{lines}\n]"


def _describe_result(actor: Actor, result: StepResult, *, is_dry: bool) -> ShownResult:
    count = len(result.originals) or len(result.ids)
    memories = ngettext("%(n)s memory", "%(n)s memories", count) % {"n": count}
    shown = result.originals if is_dry and result.originals else () if is_dry and result.is_new else result.ids
    notes = []
    if result.has_more:
        notes.append(_("More memories match: run it again for the rest."))
    if result.left_out:
        left = len(result.left_out)
        words = ngettext("%(n)s memory is held or of a pack.", "%(n)s memories are held or of packs.", left)
        notes.append(words % {"n": left})
    job_id = None if is_dry else result.job_id
    views = memories_choose(actor=actor, ids=shown[:NAMED]) if shown else []
    found = {view.cube.id: (view.words.title or view.words.content)[:LONGEST_WORDS] for view in views}
    named = tuple((memory_id, found.get(memory_id, _("A memory"))) for memory_id in shown[:NAMED])
    return ShownResult(OPERATIONS[result.op], memories, named, result.text, job_id, tuple(notes))
