"""Packs and their versions: create, build as a job, deprecate, yank, remove."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Invalid
from governance.ids import uuid7
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.keys.services import GENERAL, seal_for, token_maker
from governance.keys.signing_keys import signing_key
from governance.models import Job, Tenant
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.filters import filter_read, filter_refuse_empty, message_condition
from vault.cubes.selectors import cubes_read
from vault.deidentification.deidentifier import PersonFacts
from vault.deidentification.people import People, facts_of_people, people_of, unite_facts
from vault.forms.payloads import payload_decode, payload_open
from vault.forms.services import adapter_export
from vault.models import Cube, Pack, PackVersion, Publication
from vault.models.cube import CubeQuerySet
from vault.providers.ports import ProviderUnavailable
from vault.retrieval.queries import SHOWN
from vault.store.excerpts import preview_seal, trial_seal
from vault.store.files import (
    MOST_MEMORIES,
    AdapterStatement,
    DeIdentification,
    file_read,
    file_write,
    item_digest,
    state_data_subjects,
)
from vault.store.files import Pack as PackFile
from vault.store.listings import listing_write
from vault.store.lookup import pack_locate, pack_target, version_locate, version_place
from vault.store.numbers import number_read
from vault.store.own_texts import check_own_texts, join_own_texts
from vault.store.scan import (
    Leaving,
    LeavingRules,
    compose_report,
    is_blocked,
    memories_scan,
    packs_drop,
    state_deidentification,
)
from vault.store.wordings import Wordings, wordings_seal
from vault.vocabulary import FindingRule, PackState, PackTopic, SubjectRule, Treatment

logger = logging.getLogger(__name__)

PART = 200  # memories that are opened at once
MOST_IDS = 1_000
MOST_NAMES = 200  # that a publisher adds
MOST_ACCEPTED = 2_000
PREVIEWED = 200
LONGEST_NAME = 60
BLOCKING = LeavingRules()


@dataclass(frozen=True)
class PackDraft:
    """The texts of a pack, which others read. name: lower-case letters, digits and hyphens."""

    name: str
    title: str
    description: str = ""
    readme: str = ""
    licence: str = ""
    topic: PackTopic = PackTopic.OTHER
    authors: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True)
class VersionDraft:
    """The next version of a pack, from chosen memories (`ids`) or all that match (`filters`)."""

    number: str
    ids: tuple[UUID, ...] = ()
    filters: Mapping[str, Any] | None = field(default=None, repr=False)
    changelog: str = ""
    rules: LeavingRules = BLOCKING
    adapter: UUID | None = None  # of the caller's forms, trained on chosen memories


def pack_create(*, actor: Actor, draft: PackDraft) -> Pack:
    """Create a pack without versions. Raises Forbidden; Invalid; Conflict if the name is taken.

    Writes: Pack, AuditEntry.
    """
    authorize(actor, Permission.STORE_MANAGE)
    _check_name(draft.name)
    row = Pack(id=uuid7(), tenant_id=actor.tenant_id, member_id=actor.member_id, **_columns(draft))
    with acting(actor):
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            raise Conflict(f"There is a pack named {draft.name} already.") from error
        record(actor=actor, verb=Verb.PACK_CREATED, object_type="pack", object_ids=[row.id])
    return row


def pack_update(*, actor: Actor, pack_id: UUID, changes: Mapping[str, Any]) -> Pack:
    """Change the texts of a pack, except its name. Existing versions keep the texts that they were signed with.

    Raises NotFound; Forbidden; Invalid if a text names a person whom a version anonymised.
    Writes: Pack, Listing?, AuditEntry.
    """
    with acting(actor):
        row = pack_locate(actor, pack_id)
        authorize(actor, Permission.STORE_MANAGE, pack_target(row))
        check_own_texts(actor, row, changes)
        for name, value in changes.items():
            setattr(row, name, list(value) if isinstance(value, tuple) else value)
        row.save(update_fields=sorted(changes))
        for publication in Publication.objects.select_related("pack", "version").filter(pack=row):
            listing_write(actor=actor, publication=publication)
        record(actor=actor, verb=Verb.PACK_CHANGED, object_type="pack", object_ids=[row.id])
    return row


def pack_remove(*, actor: Actor, pack_id: UUID) -> None:
    """Remove a pack that was never published, with its versions. Raises NotFound; Forbidden; Conflict.

    Writes: AuditEntry; deletes Pack, PackVersion ….
    """
    with acting(actor):
        row = pack_locate(actor, pack_id)
        authorize(actor, Permission.STORE_MANAGE, pack_target(row))
        if Publication.objects.filter(pack=row).exists():
            raise Conflict("The pack was published: yank its versions instead.")
        PackVersion.objects.filter(pack=row).delete()
        row.delete()
        record(actor=actor, verb=Verb.PACK_REMOVED, object_type="pack", object_ids=[pack_id])


def version_build(*, actor: Actor, pack_id: UUID, draft: VersionDraft) -> JobView:
    """Create the job that scans, signs and freezes the next version. A blocked version of the same number is replaced.

    Raises NotFound; Forbidden; Invalid; Conflict if the number is taken. Writes: PackVersion, Job, AuditEntry …,
    OutboxEvent.
    """
    with acting(actor):
        pack = pack_locate(actor, pack_id)
        authorize(actor, Permission.STORE_MANAGE, pack_target(pack))
        number = number_read(draft.number)
        _check_choice(draft)
        check_own_texts(actor, pack, {"changelog": draft.changelog})
        _select_memories(actor, draft)
        if draft.adapter is not None:
            adapter_export(actor=actor, form_id=draft.adapter)
        replaceable = PackVersion.objects.filter(pack=pack, number=draft.number, state=PackState.BLOCKED)
        replaceable.delete()
        row = PackVersion(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            pack=pack,
            number=str(number),
            parts=[number.major, number.minor, number.patch],
            state=PackState.SCANNING,
            changelog=draft.changelog,
            member_id=actor.member_id,
        )
        if PackVersion.objects.filter(pack=pack, number=row.number).exists():
            raise Conflict(f"The pack has a version {row.number}: versions never change.")
        row.save(force_insert=True)
        record(actor=actor, verb=Verb.PACK_VERSION_CREATED, object_type="pack_version", object_ids=[row.id])
        return job_create(
            actor=actor,
            kind=Topic.PACK_BUILD,
            settings={"version": str(row.id)},
            request=json.dumps(_encode_request(draft)).encode(),
        )


def version_preview(*, actor: Actor, pack_id: UUID, draft: VersionDraft) -> list[Leaving]:
    """Return the decisions on the first PREVIEWED chosen memories; nothing is stored.

    Raises NotFound; Forbidden; Invalid; PiiUnavailable. Writes: AuditEntry.
    """
    with acting(actor):
        pack = pack_locate(actor, pack_id)
        authorize(actor, Permission.STORE_MANAGE, pack_target(pack))
        _check_choice(draft)
        ids = list(_select_memories(actor, draft).order_by("id").values_list("id", flat=True)[:PREVIEWED])
        dropped, ids = packs_drop(actor, ids)
        views = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ, is_use=False, leaves=True)
        texts = join_own_texts(pack, draft.changelog)
        return [*dropped, *memories_scan(actor=actor, pack_id=pack.id, views=views, rules=draft.rules, texts=texts)]


def _delete_unbuilt_version(actor: Actor, job: Job) -> None:
    """Delete the version whose build was cancelled."""
    PackVersion.objects.filter(id=UUID(job.settings["version"]), state=PackState.SCANNING).delete()


@handler(Topic.PACK_BUILD, permission=Permission.STORE_MANAGE, cancelled=_delete_unbuilt_version)
def version_scan(run: JobRun) -> Callable[[], Step]:
    """Open the chosen memories that the requester may read now, decide on each, and seal the signed file.

    Writes: PackVersion, AuditEntry ….
    """
    authorize(run.actor, Permission.STORE_MANAGE)
    version_id = UUID(run.settings["version"])
    with acting(run.actor):
        row = version_locate(run.actor, version_id)
        if row.state != PackState.SCANNING:
            raise Conflict("The version was built already.")
        draft = _decode_request(run, row)
        ids = list(_select_memories(run.actor, draft).order_by("id").values_list("id", flat=True)[: MOST_MEMORIES + 1])
    decided: list[Leaving] = []
    texts = join_own_texts(row.pack, row.changelog)
    people = _gather_people(run.actor, ids[:MOST_MEMORIES], draft.rules)
    for start in range(0, min(len(ids), MOST_MEMORIES), PART):
        with acting(run.actor):
            part = ids[start : start + PART]
            visible = set(Cube.objects.visible_to(run.actor).filter(id__in=part).values_list("id", flat=True))
            dropped, shown = packs_drop(run.actor, [cube_id for cube_id in part if cube_id in visible])
            decided += dropped
            views = cubes_read(actor=run.actor, cube_ids=shown, verb=Verb.MEMORY_EXPORTED, is_use=False, leaves=True)
            decided += memories_scan(
                actor=run.actor, pack_id=row.pack_id, views=views, rules=draft.rules, texts=texts, people=people
            )
        run.report(len(decided), len(ids))
    report = compose_report(decided)
    report["capped"] = len(ids) > MOST_MEMORIES
    done = state_deidentification(decided, draft.rules)
    report["data_subjects"] = state_data_subjects(done)
    report["de_identification"] = asdict(done) if done else None
    adapter = _open_adapter(run.actor, draft.adapter, decided) if draft.adapter else None
    report["adapter"] = adapter.fault if adapter else ""
    report["adapter_model"] = adapter.statement.model if adapter and adapter.statement else ""
    is_ready = not is_blocked(report) and not report["adapter"] and any(leaving.item for leaving in decided)
    _fill_version(row, decided, report)
    wordings = _collect_wordings(decided) if is_ready else {}
    with acting(run.system):
        content = _write_file(row, decided, wordings, done, adapter) if is_ready else b""
    row.wordings = wordings_seal(row, wordings)
    row.state = PackState.READY if is_ready else PackState.BLOCKED
    row.size = len(content)
    row.sealed = seal_for(tenant_id=row.tenant_id, scope=GENERAL, place=version_place(row), plaintext=content)
    if is_ready:
        _make_excerpts(row, file_read(content), wordings)

    def write() -> Step:
        row.save()
        record(actor=run.system, verb=Verb.PACK_VERSION_CHANGED, object_type="pack_version", object_ids=[row.id])
        if is_ready:
            emit(actor=run.system, topic=Topic.EXPORTS_DUE, payload={"event": "pack"})
        return Step(done=len(decided), total=len(decided), result={"version": str(row.id), "state": str(row.state)})

    return write


@dataclass(frozen=True)
class _LeavingAdapter:
    """An adapter as it leaves. fault: why it cannot leave with this version."""

    statement: AdapterStatement | None = None
    content: bytes = field(default=b"", repr=False)
    fault: str = ""


def _open_adapter(actor: Actor, form_id: UUID, decided: Sequence[Leaving]) -> _LeavingAdapter:
    """Return an adapter as it leaves. Each of its memories must leave with the pack, unchanged.

    Raises as `adapter_export`; ProviderUnavailable.
    """
    form, title = adapter_export(actor=actor, form_id=form_id)
    unchanged = {leaving.cube_id: leaving.item for leaving in decided if leaving.treatment is Treatment.AS_IS}
    items = [item for cube_id in form.parents if (item := unchanged.get(cube_id))]
    if len(items) < len(form.parents):
        return _LeavingAdapter(fault="memories")
    payload = payload_open(form)
    if payload is None:
        return _LeavingAdapter(fault="erased")
    content = payload_decode(payload)[1]
    statement = AdapterStatement(
        title=title,
        model=form.model,
        fingerprint=form.fingerprint,
        digest=hashlib.sha256(content).hexdigest(),
        memories=tuple(item.id for item in items),
        report=form.report or {},
    )
    return _LeavingAdapter(statement, content)


def _gather_people(actor: Actor, ids: list[UUID], rules: LeavingRules) -> People:
    """Return the data subjects of the chosen memories, before any of these is treated. Writes: AuditEntry."""
    facts: dict[UUID, PersonFacts] = {}
    if rules.subjects is SubjectRule.ANONYMISE:
        with acting(actor):
            rows = Cube.objects.visible_to(actor).filter(id__in=ids, subject_id__isnull=False)
            about = list(rows.order_by("subject_id", "id").values_list("id", flat=True))
        for start in range(0, len(about), PART):
            with acting(actor):
                _, shown = packs_drop(actor, about[start : start + PART])
                views = cubes_read(actor=actor, cube_ids=shown, verb=Verb.MEMORY_READ, is_use=False)
            for subject_id, person in facts_of_people(actor=actor, views=views, more_names=rules.names).items():
                facts[subject_id] = unite_facts(facts.get(subject_id), person)
    return people_of(facts)


def version_deprecate(*, actor: Actor, version_id: UUID, reason: str) -> PackVersion:
    """Deprecate a version; subscribers who installed it keep it. Raises NotFound; Forbidden; Conflict.

    Writes: PackVersion, AuditEntry.
    """
    with acting(actor):
        row = version_locate(actor, version_id, lock=True)
        authorize(actor, Permission.STORE_MANAGE, pack_target(row.pack))
        if row.state != PackState.READY:
            raise Conflict(f"The version is {row.state}; only a ready one can be deprecated.")
        return version_mark(actor=actor, row=row, state=PackState.DEPRECATED, reason=reason)


def version_mark(*, actor: Actor, row: PackVersion, state: PackState, reason: str) -> PackVersion:
    """Set the state of a version that the caller has locked. Raises Forbidden; Invalid if the reason names a person.

    Writes: PackVersion, AuditEntry.
    """
    authorize(actor, Permission.STORE_MANAGE, pack_target(row.pack))
    check_own_texts(actor, row.pack, {"reason": reason})
    row.state, row.reason = state, reason
    row.save(update_fields=["state", "reason"])
    verb = Verb.PACK_VERSION_YANKED if state is PackState.YANKED else Verb.PACK_VERSION_CHANGED
    record(actor=actor, verb=verb, object_type="pack_version", object_ids=[row.id], detail={"state": str(state)})
    return row


def _columns(draft: PackDraft) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(draft).items()}


def _check_name(name: str) -> None:
    plain = name.isascii() and name.replace("-", "").isalnum() and name == name.lower()
    if not plain or name != name.strip("-") or len(name) > LONGEST_NAME:
        message = f"lower-case letters, digits and hyphens, at most {LONGEST_NAME}"
        raise Invalid(errors=[FieldError("name", message)])


def _check_choice(draft: VersionDraft) -> None:
    if bool(draft.ids) == (draft.filters is not None):
        raise Invalid(errors=[FieldError("ids", "give ids or filters, and not both")])
    if draft.filters is not None:
        filter_refuse_empty(draft.filters)
    if len(draft.ids) > MOST_IDS:
        raise Invalid(errors=[FieldError("ids", f"at most {MOST_IDS}")])


def _select_memories(actor: Actor, draft: VersionDraft) -> CubeQuerySet:
    """Return the chosen memories that the actor may read, without merged, archived and expired ones. Raises Invalid."""
    rows = Cube.objects.visible_to(actor).filter(state__in=SHOWN)
    if draft.filters is None:
        return rows.filter(id__in=draft.ids)
    matching = filter_read(token_maker(actor.tenant_id), draft.filters)
    return rows.filter(matching, message_condition(draft.filters))


def _encode_request(draft: VersionDraft) -> dict[str, Any]:
    return {
        "ids": [str(cube_id) for cube_id in draft.ids],
        "filters": draft.filters,
        "findings": draft.rules.findings,
        "subjects": draft.rules.subjects,
        "names": list(draft.rules.names),
        "accepted": sorted(draft.rules.accepted),
        "is_read": draft.rules.is_read,
        "adapter": str(draft.adapter) if draft.adapter else "",
    }


def _decode_request(run: JobRun, row: PackVersion) -> VersionDraft:
    """Return the draft in the job's request. Raises Conflict if the request was erased."""
    if run.request is None:
        raise Conflict("What this job was asked for was erased.")
    asked = json.loads(run.request)
    return VersionDraft(
        number=row.number,
        ids=tuple(UUID(cube_id) for cube_id in asked["ids"]),
        filters=asked["filters"],
        adapter=UUID(asked["adapter"]) if asked.get("adapter") else None,
        rules=LeavingRules(
            FindingRule(asked["findings"]),
            SubjectRule(asked["subjects"]),
            tuple(asked.get("names", ())),
            frozenset(asked.get("accepted") or ()),
            asked.get("is_read", False),
        ),
    )


def _fill_version(row: PackVersion, decided: list[Leaving], report: dict[str, Any]) -> None:
    items = [leaving.item for leaving in decided if leaving.item is not None]
    row.report = report
    row.count = len(items)
    row.subjects = sorted(
        {leaving.subject_id for leaving in decided if leaving.item is not None and leaving.subject_id is not None}
    )
    row.languages = sorted({item.language for item in items if item.language})


def _collect_wordings(decided: list[Leaving]) -> dict[UUID, Wordings]:
    return {
        leaving.item.id: leaving.wordings
        for leaving in decided
        if leaving.item is not None and leaving.wordings is not None
    }


def _write_file(
    row: PackVersion,
    decided: list[Leaving],
    wordings: Mapping[UUID, Wordings],
    done: DeIdentification | None,
    adapter: _LeavingAdapter | None,
) -> bytes:
    pack, key = row.pack, signing_key()
    stated = {
        "name": f"{Tenant.objects.get(id=row.tenant_id).slug}/{pack.name}",
        "version": row.number,
        "created_at": database_now(),
        "data_subjects": state_data_subjects(done),
        "de_identification": done,
        "adapter": adapter.statement if adapter else None,
        **{name: getattr(pack, name) for name in ("title", "description", "readme", "licence", "topic")},
        **{name: tuple(getattr(pack, name)) for name in ("authors", "keywords")},
        "languages": tuple(row.languages),
    }
    items = [leaving.item for leaving in decided if leaving.item is not None]
    seconds = [replace(item, content=wordings[item.id].content) for item in items if item.id in wordings]
    stated["alternatives"] = {str(item.id): item_digest(item) for item in seconds}
    content = adapter.content if adapter else b""
    return file_write(stated, items, public_key=key.public_key(), sign=key.sign, adapter=content)


def _make_excerpts(row: PackVersion, file: PackFile, wordings: Mapping[UUID, Wordings]) -> None:
    """Fill what a version states of its file, which was verified as a subscriber does it.

    Without an embedding model the index of trials is made later, when a trial asks for it.
    """
    row.digest, row.key_id = file.manifest.digest, file.manifest.key_id
    row.preview = preview_seal(row, file.items, wordings)
    try:
        row.trial, row.trial_model = trial_seal(row, file.items, wordings)
    except ProviderUnavailable as failure:
        logger.warning("a version of a pack has no index for trials: %s", failure.code)
