"""Building of cubes and versions from drafts and changes: look-ups, deduplication, screening and sealing.

All of it runs in the caller's transaction and stores no cube.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Model

from governance.actor import Actor
from governance.backdate import find_backdated_moment
from governance.database import database_now
from governance.errors import FieldError, Forbidden, Invalid
from governance.ids import uuid7
from governance.keys.services import TokenMaker, token_maker
from governance.models import Persona
from governance.personas.selectors import persona_get
from governance.policies.active import policies_active
from governance.privacy.detection import detector
from governance.privacy.pii.detector import DetectorFailed
from governance.privacy.services import subject_ensure
from governance.vocabulary import Permission
from vault.content.bulk_insert import defaults_of, make_row
from vault.content.drafts import CubeChanges, CubeDraft, InvalidDraft, SourceRef, Unset
from vault.content.words import Words, key_scope, words_open, words_seal
from vault.cubes.dedup import DuplicateIndex, load_duplicate_index
from vault.cubes.retention import expiry_settle
from vault.cubes.rules import approximate_tokens, version_hash
from vault.cubes.writer.prepared_texts import (
    LARGE_CALL,
    Reading,
    prepared_places,
    text_index_of,
    text_key,
    texts_of_words,
)
from vault.cubes.writer.text_process import run_in_text_process
from vault.index.marks import speaker_marks
from vault.index.terms import IndexEntries, TextIndex, index_of, text_index
from vault.lexicon.resolved_dates import event_of_changed
from vault.models import Cube, CubeVersion, Namespace
from vault.namespaces.mounts import MountPlaces, refuse_mounted_read_only, session_token
from vault.namespaces.services import namespace_for_writing
from vault.screening.commands import gives_orders, is_untrusted
from vault.screening.findings import findings_of
from vault.screening.screen import EVERYWHERE, Finding, Screen, ScreenedTexts, texts_of
from vault.screening.texts import Place as Location
from vault.screening.texts import Texts, find_places
from vault.vocabulary import (
    AccessLevel,
    MemoryType,
    Modality,
    NamespaceKind,
    PiiField,
    SemanticType,
    Sensitivity,
    Source,
    SourceKind,
    State,
)

ENTRY_KEY = "key"  # of the metadata of an entry in a pipeline cache
CLEAR_FIELDS = (
    "namespace_id",
    "persona_id",
    "subject_id",
    "owner_id",
    "access_level",
    "semantic_type",
    "sensitivity",
    "tags",
    "importance",
    "priority",
    "event_time",
    "valid_from",
    "valid_to",
    "expires_at",
)


@dataclass(frozen=True)
class BuiltCube:
    """A cube, its newest version and its postings, not yet written; or the stored cube of a duplicate.

    words: as stored. findings: personal data in them. redacted: number of redacted values.
    """

    cube: Cube
    version: CubeVersion
    words: Words = field(repr=False)
    indexed: IndexEntries
    duplicate: bool = False
    sources: tuple[SourceRef, ...] = ()
    findings: tuple[Finding, ...] = ()
    redacted: int = 0
    repeats: Cube | None = None  # the stored statement of which this is another occasion
    changed: frozenset[str] = frozenset()  # the fields that a change sets
    keeps_postings: bool = False  # those of the version before are its own, too


@dataclass(frozen=True)
class Place:
    """The place of drafts: the columns of a new cube, and the objects of its foreign keys."""

    namespace: Namespace
    columns: Mapping[str, Any]
    attached: Mapping[str, Model | None]

    @property
    def persona_id(self) -> UUID | None:
        found: UUID | None = self.columns["persona_id"]
        return found


@dataclass(frozen=True)
class TextIndexes:
    """The prepared texts of a call; a missing entry was not prepared.

    words: index of a text by title, speaker and content. places: of personal data, by the position of the draft.
    """

    words: Mapping[tuple[str, str, str], TextIndex] = field(default_factory=dict)
    places: Mapping[int, Sequence[Location]] = field(default_factory=dict)


NO_TEXTS = TextIndexes()


def texts_index(tenant_id: UUID, drafts: Sequence[CubeDraft]) -> TextIndexes:
    """Index the texts of a call before its transaction, those of a large call in another process.

    Raises KeyUnavailable; Unavailable when the other process takes too long or ends.
    """
    maker = TokenMaker(key=token_maker(tenant_id).key)  # without what was looked up, which would go along
    is_large = sum(len(draft.content) for draft in drafts) >= LARGE_CALL
    return run_in_text_process(read_texts, maker, list(drafts)) if is_large else read_texts(maker, drafts)


def read_texts(maker: TokenMaker, drafts: Sequence[CubeDraft]) -> TextIndexes:
    places: dict[int, Sequence[Location]] = {}
    for position, draft in enumerate(drafts):
        with suppress(DetectorFailed):  # asked again where the policy is known, which says what follows
            places[position] = find_places(detector(), texts_of(draft), EVERYWHERE)
    return TextIndexes({text_key(draft): text_index(maker, draft) for draft in drafts}, places)


def reading_of_changes(cube: Cube, before: CubeVersion, changes: CubeChanges) -> Reading:
    """Return the texts of a version after a change, for their preparation. Raises KeyUnavailable."""
    tags = tuple(cube.tags) if isinstance(changes.tags, Unset) else changes.tags
    return Reading(
        texts_of_words(_apply_changes(_open_words(cube, before), changes), tags), frozenset(_new_fields(changes))
    )


class Resolver:
    """Cached look-ups of the objects that drafts name. texts: prepared texts.

    findings: of versions before changes, by version id, if the caller has loaded them.
    """

    def __init__(self, actor: Actor, permission: Permission, texts: TextIndexes = NO_TEXTS) -> None:
        self.actor = actor
        self.permission = permission
        self.texts = texts
        self.maker: TokenMaker = token_maker(actor.tenant_id)
        self.policies = policies_active(actor)
        self.findings: Mapping[UUID, Sequence[Finding]] = {}
        self._namespaces: dict[str | None, Namespace] = {}
        self._personas: dict[str, Persona] = {}
        self._subjects: dict[str, UUID] = {}
        self._places: dict[tuple[str | None, str | None, str | None], Place] = {}

    @cached_property
    def now(self) -> datetime:
        return database_now()

    def text_index(self, words: Words) -> TextIndex:
        return self.texts.words.get(text_key(words)) or text_index_of(self.maker, words)

    def create_missing(self, drafts: Sequence[CubeDraft]) -> None:
        """Create missing namespaces and data subjects in one order for all callers, to prevent deadlocks."""
        for path in sorted({draft.namespace for draft in drafts}, key=lambda path: path or ""):
            self.namespace(path)
        for subject in sorted({draft.subject for draft in drafts if draft.subject is not None}):
            self.subject_id(subject)

    def namespace(self, path: str | None) -> Namespace:
        if path not in self._namespaces:
            self._namespaces[path] = namespace_for_writing(actor=self.actor, path=path, permission=self.permission)
        return self._namespaces[path]

    def persona(self, reference: str | None) -> Persona | None:
        """Return the persona of a reference; without one, the persona that the actor's key is bound to, or None."""
        bound = self.actor.binding.persona_id if self.actor.binding else None
        reference = str(bound) if reference is None and bound else reference
        if reference is None:
            return None
        if reference not in self._personas:
            self._personas[reference] = persona_get(actor=self.actor, reference=reference)
        return self._personas[reference]

    def subject_id(self, reference: str | None) -> UUID | None:
        if reference is None:
            return None
        if reference not in self._subjects:
            self._subjects[reference] = subject_ensure(actor=self.actor, reference=reference).id
        return self._subjects[reference]

    def resolve_place(self, draft: CubeDraft) -> Place:
        """Return the place of a draft, cached for drafts with the same place."""
        named = (draft.namespace, draft.persona, draft.subject)
        if named not in self._places:
            self._places[named] = self._make_place(*named)
        return self._places[named]

    def _make_place(self, path: str | None, persona_named: str | None, subject: str | None) -> Place:
        namespace, persona = self.namespace(path), self.persona(persona_named)
        private = namespace.kind == NamespaceKind.PRIVATE
        columns = {
            **defaults_of(Cube),
            "tenant_id": self.actor.tenant_id,
            "namespace_id": namespace.id,
            "persona_id": persona.id if persona else None,
            "subject_id": self.subject_id(subject),
            "owner_id": namespace.owner_id if private else self.actor.member_id,
            "access_level": AccessLevel.PRIVATE if private else AccessLevel.SHARED,
            "state": State.GENERATED,
        }
        return Place(namespace, columns, {"namespace": namespace, "persona": persona})


def build_cubes(
    *, actor: Actor, drafts: Sequence[CubeDraft], permission: Permission, texts: TextIndexes
) -> list[BuiltCube]:
    """Build a cube from each draft, in order. Raises InvalidDraft, Forbidden, KeyUnavailable."""
    resolver = Resolver(actor, permission, texts)
    clean = _screen_drafts(resolver, drafts)
    resolver.create_missing(drafts)
    known = load_duplicate_index(
        actor, resolver.maker, [(draft, resolver.namespace(draft.namespace).id) for draft, _ in clean]
    )
    built: list[BuiltCube] = []
    with _name_failing_draft() as at:
        for at.index, (draft, screened) in enumerate(clean):
            refuse_times(draft, known.now)
            _check_place(resolver, draft)
            kept = _message_of_other_text(resolver, draft, clean, built)
            if kept is not None:  # its message is stored with another text
                built.append(kept)
                continue
            sources = _sources_of(draft, built)
            item = _find_existing(resolver, known, draft, sources, screened)
            is_known_message = item is not None and draft.is_message
            repeated = None if is_known_message else _find_repeated(resolver, known, draft, built)
            if repeated is not None:
                built.append(_build_occasion(resolver, known, draft, sources, screened, repeated))
                continue
            item = item or _build_cube(
                resolver, known, draft, sources, screened, _needs_quarantine(resolver.actor, draft, built)
            )
            built.append(item)
            known.remember(draft, item.cube, sources)
    return built


def _screen_drafts(resolver: Resolver, drafts: Sequence[CubeDraft]) -> list[tuple[CubeDraft, ScreenedTexts]]:
    """Screen each draft by the rules of its namespace, before any lock is taken."""
    screen = Screen(resolver.actor)
    with _name_failing_draft() as at:
        paths = [resolver.namespace(draft.namespace).path for at.index, draft in enumerate(drafts)]
        placed = zip(drafts, paths, strict=True)
        known = resolver.texts.places
        return [screen.screen_draft(draft, path, known.get(at.index)) for at.index, (draft, path) in enumerate(placed)]


@dataclass
class _DraftPosition:
    index: int = 0


@contextmanager
def _name_failing_draft() -> Iterator[_DraftPosition]:
    """Yield a position to set before each draft is checked. An Invalid becomes an InvalidDraft with that position."""
    at = _DraftPosition()
    try:
        yield at
    except Invalid as fault:
        raise InvalidDraft(at.index, fault) from fault


def _message_of_other_text(
    resolver: Resolver, draft: CubeDraft, clean: Sequence[tuple[CubeDraft, ScreenedTexts]], before: Sequence[BuiltCube]
) -> BuiltCube | None:
    """Return the stored message of a derived draft if it has another text than the message of this call; else None."""
    if draft.parent is None or not before[draft.parent].duplicate:
        return None
    parent = before[draft.parent]
    same = resolver.maker.hash(clean[draft.parent][0].content) == bytes(parent.cube.content_hash)
    return None if same else parent


def _sources_of(draft: CubeDraft, before: Sequence[BuiltCube]) -> tuple[SourceRef, ...]:
    """Return the sources of a draft. before: cubes built from the earlier drafts of the call."""
    if draft.parent is None:
        return draft.sources
    parent = before[draft.parent].cube
    return (SourceRef(parent.id, parent.version, draft.parent_kind), *draft.sources)


def _check_place(resolver: Resolver, draft: CubeDraft) -> None:
    """Check the rules for writes of the namespace's kind and its mounts. Raises Forbidden; Invalid."""
    place, context = resolver.resolve_place(draft), resolver.actor.context
    namespace, session = place.namespace, draft.session_id or context.session
    if namespace.is_mounted:
        personas = frozenset({place.persona_id} if place.persona_id else ())
        places = MountPlaces(personas, session, draft.task_id or context.task)
        refuse_mounted_read_only(resolver.actor, namespace, places)
    if namespace.kind == NamespaceKind.CONTEXT_POOL and namespace.session_token != session_token(
        resolver.actor, session
    ):
        raise Forbidden(
            "This context pool belongs to another session: name its session_id.",
            permission=resolver.permission,
            rule="session",
            object_type="namespace",
            object_id=namespace.id,
        )
    if namespace.kind == NamespaceKind.PIPELINE_CACHE and not isinstance(draft.metadata.get(ENTRY_KEY), str):
        raise Invalid(errors=[FieldError(f"metadata.{ENTRY_KEY}", "an entry of a pipeline cache has a key: a text")])


def _find_existing(
    resolver: Resolver, known: DuplicateIndex, draft: CubeDraft, sources: Sequence[SourceRef], screened: ScreenedTexts
) -> BuiltCube | None:
    place = resolver.resolve_place(draft)
    if place.namespace.kind == NamespaceKind.PIPELINE_CACHE:  # two keys may have the same result
        return None
    cube = known.find(draft, place.namespace.id, place.persona_id, sources)
    if cube is None:
        return None
    return BuiltCube(
        cube,
        CubeVersion(),
        Words(draft.content),
        IndexEntries({}, 0),
        duplicate=True,
        findings=screened.findings,
        redacted=screened.redacted,
    )


def _find_repeated(
    resolver: Resolver, known: DuplicateIndex, draft: CubeDraft, before: Sequence[BuiltCube]
) -> Cube | None:
    """Return the stored statement of the same speaker that a draft repeats, or None. Runs a query if there is one."""
    place = resolver.resolve_place(draft)
    cube = known.find_repeated(draft, place.namespace.id, place.persona_id)
    if cube is None:
        return None
    words = next((item.words for item in before if item.cube is cube), None)
    if words is None:
        version = CubeVersion.objects.get(tenant_id=cube.tenant_id, cube_id=cube.id, number=cube.version)
        words = _open_words(cube, version)
    return cube if words.speaker == draft.speaker else None


def _build_occasion(
    resolver: Resolver,
    known: DuplicateIndex,
    draft: CubeDraft,
    sources: tuple[SourceRef, ...],
    screened: ScreenedTexts,
    repeated: Cube,
) -> BuiltCube:
    """Build another occasion of a stored statement: it is no memory of its own, but remains in its conversation."""
    hidden = replace(draft, is_dialogue_only=True, semantic_type=SemanticType.DIALOGUE)
    origin = SourceRef(repeated.id, repeated.version, SourceKind.EXTRACT)
    built = _build_cube(resolver, known, hidden, (*sources, origin), screened, is_quarantined=False)
    return replace(built, repeats=repeated)


def _needs_quarantine(actor: Actor, draft: CubeDraft, before: Sequence[BuiltCube]) -> bool:
    """Return whether a draft enters quarantine. Drafts derived from a quarantined one wait for its review instead."""
    if draft.parent is not None and before[draft.parent].cube.is_quarantined:
        return False
    texts = (draft.content, draft.title, draft.speaker)
    return is_untrusted(actor, draft.source, draft.modality) and any(map(gives_orders, texts))


def _build_cube(
    resolver: Resolver,
    known: DuplicateIndex,
    draft: CubeDraft,
    sources: tuple[SourceRef, ...],
    screened: ScreenedTexts,
    is_quarantined: bool,
) -> BuiltCube:
    place = resolver.resolve_place(draft)
    session_token, position = known.next_position(draft, place.namespace.id)
    cube = make_row(
        Cube,
        {
            **place.columns,
            "id": uuid7(),
            "created_at": known.now,
            "updated_at": known.now,
            "layer": draft.layer,
            "modality": draft.modality,
            "type": draft.type,
            "source": draft.source,
            "reader": draft.reader,
            "semantic_type": draft.semantic_type,
            "sensitivity": draft.sensitivity,
            "tags": list(dict.fromkeys(draft.tags)),
            "purpose_tags": [],
            "importance": draft.importance,
            "priority": draft.priority,
            "trust": draft.trust,
            "event_time": draft.event_time,
            "said_at": draft.said_at or (known.now if draft.is_message or sources else None),
            "valid_from": draft.valid_from,
            "valid_to": draft.valid_to,
            "expires_at": _expiry_of(draft, place.namespace, known.now),
            "session_token": session_token,
            "position": position,
            "has_sources": bool(sources),
            "is_quarantined": is_quarantined,
            "is_indexed": not is_quarantined and draft.type == MemoryType.PLAINTEXT,
            "is_dialogue_only": draft.is_dialogue_only,
        },
        place.attached,
    )
    expiry_settle(resolver.policies, cube, born=known.now, asked=cube.expires_at is not None)
    words = Words(
        content=draft.content,
        title=draft.title,
        metadata=draft.metadata,
        speaker=draft.speaker,
        session_id=draft.session_id,
        message_id=draft.message_id,
        task_id=draft.task_id,
        quotes=draft.quotes,
    )
    return _seal_version(
        resolver,
        cube,
        words,
        before=None,
        reason="",
        sources=sources,
        findings=screened.findings,
        redacted=screened.redacted,
    )


def _expiry_of(draft: CubeDraft, namespace: Namespace, now: datetime) -> datetime | None:
    usual = settings.PIPELINE_CACHE_SECONDS if namespace.kind == NamespaceKind.PIPELINE_CACHE else None
    seconds = draft.ttl_seconds or (None if draft.expires_at else usual)
    return now + timedelta(seconds=seconds) if seconds else draft.expires_at


def build_version(
    *,
    actor: Actor,
    cube: Cube,
    before: CubeVersion,
    changes: CubeChanges,
    reason: str,
    findings: Sequence[Finding] | None = None,
    resolver: Resolver | None = None,
) -> BuiltCube:
    """Build the next version of `cube` with `changes`. Raises Invalid, Forbidden, KeyUnavailable.

    findings: its personal data, for a redaction; None: changed fields are screened. resolver: shared by the versions
    of a call.
    """
    resolver = resolver or Resolver(actor, Permission.MEMORY_CREATE)
    words, was_indexed = _open_words(cube, before), cube.is_indexed
    for name in changes.named_fields() & {"tags", *CLEAR_FIELDS}:
        value = getattr(changes, name)
        setattr(cube, name, list(dict.fromkeys(value)) if name == "tags" else value)
    if not isinstance(changes.namespace, Unset):
        _move_cube(cube, resolver.namespace(changes.namespace))
    if not isinstance(changes.persona, Unset):
        cube.persona = resolver.persona(changes.persona)
    if not isinstance(changes.subject, Unset):
        cube.subject_id = resolver.subject_id(changes.subject)
    expiry_settle(resolver.policies, cube, born=cube.created_at, asked=not isinstance(changes.expires_at, Unset))
    cube.version = before.number + 1
    was, words = words, _apply_changes(words, changes)
    is_rewritten = findings is None and words.content != was.content  # a redaction rewrites nothing
    cube.is_dialogue_only &= cube.semantic_type == SemanticType.DIALOGUE and not is_rewritten
    redacted = 0
    if findings is None:
        screened, findings = _screen_changes(resolver, cube, before, changes, words)
        words, redacted = _replace_texts(words, screened.texts), screened.redacted
        cube.tags = list(screened.texts.tags)
    if isinstance(changes.event_time, Unset):
        cube.event_time = event_of_changed(
            words.content, was.content, cube.said_at, cube.event_time, is_hidden=not is_rewritten
        )
    cube.is_quarantined = _brings_in_orders(actor, was, words)
    cube.is_indexed &= not cube.is_quarantined
    is_kept = was_indexed and words == was and _keeps_postings(cube, before, resolver.now)
    built = _seal_version(
        resolver, cube, words, before=before, reason=reason, findings=findings, redacted=redacted, is_kept=is_kept
    )
    return replace(built, changed=changes.named_fields())


def _keeps_postings(cube: Cube, before: CubeVersion, now: datetime) -> bool:
    """Return whether an indexed memory stays in its index, with postings whose columns are those of the version
    before.
    """
    is_over = cube.deleted_at is not None or (cube.expires_at is not None and cube.expires_at <= now)
    columns = ("namespace_id", "persona_id", "event_time")
    return cube.is_indexed and not is_over and all(getattr(cube, name) == getattr(before, name) for name in columns)


def _brings_in_orders(actor: Actor, was: Words, words: Words) -> bool:
    """Return whether a change by an API key adds a text that gives orders to a model."""
    changed = [new for old, new in zip(_prompt_texts(was), _prompt_texts(words), strict=True) if new != old]
    return is_untrusted(actor, Source.API, Modality.TEXT) and any(map(gives_orders, changed))


def _prompt_texts(words: Words) -> tuple[str, str, str]:
    """Return the texts that a prompt may contain."""
    return words.content, words.title, words.speaker


def _screen_changes(
    resolver: Resolver,
    cube: Cube,
    before: CubeVersion,
    changes: CubeChanges,
    words: Words,
) -> tuple[ScreenedTexts, Sequence[Finding]]:
    """Screen the changed fields, and keep the findings of the other fields."""
    new, texts = _new_fields(changes), texts_of_words(words, tuple(cube.tags))
    places = prepared_places(texts, new)
    screened = Screen(resolver.actor).screen_texts(
        texts, new, namespace_path=cube.namespace.path, sensitivity=Sensitivity(cube.sensitivity), places=places
    )
    known = resolver.findings.get(before.id)
    known = findings_of(before) if known is None and new != EVERYWHERE else known or ()
    kept = [finding for finding in known if finding.place.part not in new]
    return screened, [*kept, *screened.findings]


def _new_fields(changes: CubeChanges) -> Collection[PiiField]:
    """Return the fields to screen: the changed ones, or all after a change of namespace or sensitivity."""
    moved = changes.named_fields() & {"namespace", "sensitivity"}
    return EVERYWHERE if moved else {name for name in PiiField if str(name) in changes.named_fields()}


def _open_words(cube: Cube, version: CubeVersion) -> Words:
    return words_open(tenant_id=cube.tenant_id, cube_id=cube.id, number=version.number, blob=version.sealed)


def rebuild_postings(cube: Cube, version: CubeVersion) -> BuiltCube:
    """Build the postings of a stored cube from its words, without terms that the version does not list.

    Deletions go by the terms of the version, and a later lexicon may yield other terms for the same words.
    """
    words = _open_words(cube, version)
    maker, known = token_maker(cube.tenant_id), set(version.terms)
    entries = index_of(maker, words, text_index_of(maker, words)).entries
    kept = {term: count for term, count in entries.items() if term in known}
    return BuiltCube(cube, version, words, IndexEntries(kept, cube.term_count))


def refuse_times(of: Cube | CubeDraft, now: datetime) -> None:
    """Raise Invalid for an expiry in the past and for a validity that ends before it begins."""
    if of.expires_at is not None and of.expires_at <= now:
        raise Invalid(errors=[FieldError("expires_at", "must be in the future")])
    if of.valid_from and of.valid_to and of.valid_to <= of.valid_from:
        raise Invalid(errors=[FieldError("valid_to", "must be after valid_from")])


def _move_cube(cube: Cube, namespace: Namespace) -> None:
    """Move a cube to a namespace, whose kind decides its access level; a private one also decides its owner.

    The caller checks the rights.
    """
    private = namespace.kind == NamespaceKind.PRIVATE
    cube.namespace = namespace
    cube.owner_id = namespace.owner_id if private else cube.owner_id
    cube.access_level = AccessLevel.PRIVATE if private else AccessLevel.SHARED


def _apply_changes(words: Words, changes: CubeChanges) -> Words:
    return replace(
        words,
        content=words.content if isinstance(changes.content, Unset) else changes.content,
        title=words.title if isinstance(changes.title, Unset) else changes.title,
        metadata=words.metadata if isinstance(changes.metadata, Unset) else changes.metadata,
        speaker=words.speaker if isinstance(changes.speaker, Unset) else changes.speaker,
        quotes=words.quotes if isinstance(changes.content, Unset) else (),
    )


def _replace_texts(words: Words, texts: Texts) -> Words:
    """Return `words` with the screened texts."""
    return replace(
        words,
        content=texts.content,
        title=texts.title,
        metadata=texts.metadata,
        speaker=texts.speaker,
    )


def _seal_version(
    resolver: Resolver,
    cube: Cube,
    words: Words,
    *,
    before: CubeVersion | None,
    reason: str,
    sources: tuple[SourceRef, ...] = (),
    findings: Sequence[Finding] = (),
    redacted: int = 0,
    is_kept: bool = False,
) -> BuiltCube:
    """Seal the words, set the columns that follow from them, and make the version row.

    is_kept: the words and their place in the index are those of the version before.
    """
    if is_kept and before is not None:
        terms, indexed = list(before.terms), IndexEntries({}, cube.term_count)
    else:
        words, indexed = _index_words(resolver, cube, words)
        terms = list(indexed.entries)
    clear = {name: getattr(cube, name) for name in CLEAR_FIELDS}
    scope = key_scope(subject_id=cube.subject_id, persona_member_id=cube.persona.member_id if cube.persona else None)
    sealed = words_seal(tenant_id=cube.tenant_id, cube_id=cube.id, number=cube.version, scope=scope, words=words)
    previous = bytes(before.hash) if before else None
    version = make_row(
        CubeVersion,
        {
            **defaults_of(CubeVersion),
            **clear,
            **({"created_at": moment} if (moment := find_backdated_moment()) else {}),
            "id": uuid7(),
            "tenant_id": cube.tenant_id,
            "cube_id": cube.id,
            "number": cube.version,
            "sealed": sealed,
            "terms": terms,
            "principal_kind": resolver.actor.principal_kind,
            "principal_id": resolver.actor.principal_id,
            "reason": reason,
            "previous_hash": previous,
            "hash": version_hash(previous=previous, sealed=sealed, clear=clear),
        },
        {"cube": cube},
    )
    if cube.is_quarantined or cube.type != MemoryType.PLAINTEXT:
        indexed = IndexEntries({}, indexed.length)  # it enters no index
    return BuiltCube(
        cube,
        version,
        words,
        indexed,
        sources=sources,
        findings=tuple(findings),
        redacted=redacted,
        keeps_postings=is_kept,
    )


def _index_words(resolver: Resolver, cube: Cube, words: Words) -> tuple[Words, IndexEntries]:
    """Return words with their keywords, and their postings; set the columns of the memory that follow from them."""
    text = resolver.text_index(words)
    words = replace(words, keywords=text.keywords)
    indexed = index_of(resolver.maker, words, text)
    cube.content_hash = resolver.maker.hash(words.content)
    cube.language = text.language
    cube.token_count = approximate_tokens(words.content)
    cube.term_count = indexed.length
    cube.speaker_marks = speaker_marks(resolver.maker, words.speaker)
    cube.entity_marks = text.named
    cube.mentions_time, cube.asks = text.mentions_time, text.asks
    return words, indexed
