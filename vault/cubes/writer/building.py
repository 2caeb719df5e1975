"""From drafts to rows: resolve what they name, leave out what is known, seal the rest; in the caller's transaction."""

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
from vault.content.bulk_insert import defaults_of, row_made
from vault.content.drafts import CubeChanges, CubeDraft, InvalidDraft, SourceRef, Unset
from vault.content.words import Words, key_scope, words_open, words_seal
from vault.cubes.dedup import DuplicateIndex, load_duplicate_index
from vault.cubes.retention import expiry_settle
from vault.cubes.rules import approximate_tokens, version_hash
from vault.cubes.writer.outside import run_outside
from vault.cubes.writer.prepared import (
    LARGE_CALL,
    Reading,
    places_prepared,
    text_index_of,
    text_key,
    texts_of_words,
)
from vault.index.marks import speaker_marks
from vault.index.terms import Indexed, TextIndex, index_of, text_index
from vault.models import Cube, CubeVersion, Namespace
from vault.namespaces.mounts import MountPlaces, refuse_mounted_read_only, session_token
from vault.namespaces.services import namespace_for_writing
from vault.screening.commands import gives_orders, is_untrusted
from vault.screening.findings import findings_of
from vault.screening.screen import EVERYWHERE, Finding, Screen, Screened, texts_of
from vault.screening.texts import Place as Location
from vault.screening.texts import Texts, places_in
from vault.vocabulary import (
    AccessLevel,
    MemoryType,
    Modality,
    NamespaceKind,
    PiiField,
    SemanticType,
    Sensitivity,
    Source,
    State,
)

ENTRY_KEY = "key"  # of an entry's metadata: what a pipeline cache finds it by
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
class Built:
    """A cube, its newest version and its postings, not yet written; or the cube that was there already.

    `words` as they are stored; `findings`: personal data in them that is kept track of; `redacted`: how much went.
    """

    cube: Cube
    version: CubeVersion
    words: Words = field(repr=False)
    indexed: Indexed
    duplicate: bool = False
    sources: tuple[SourceRef, ...] = ()
    findings: tuple[Finding, ...] = ()
    redacted: int = 0


@dataclass(frozen=True)
class Place:
    """The place of drafts: the columns of a new cube there, and the objects that its foreign keys name."""

    namespace: Namespace
    columns: Mapping[str, Any]
    attached: Mapping[str, Model | None]

    @property
    def persona_id(self) -> UUID | None:
        found: UUID | None = self.columns["persona_id"]
        return found


@dataclass(frozen=True)
class TextIndexes:
    """The prepared texts of a call. words: by title, speaker and content; places: of personal data, by the position of
    their draft; a missing entry was not prepared.
    """

    words: Mapping[tuple[str, str, str], TextIndex] = field(default_factory=dict)
    places: Mapping[int, Sequence[Location]] = field(default_factory=dict)


NO_TEXTS = TextIndexes()


def texts_index(tenant_id: UUID, drafts: Sequence[CubeDraft]) -> TextIndexes:
    """Read the texts of a call before its transaction; those of a large one in another process.

    Raises KeyUnavailable; Unavailable when the other process takes too long or ends.
    """
    maker = TokenMaker(key=token_maker(tenant_id).key)  # without what was looked up, which would go along
    is_large = sum(len(draft.content) for draft in drafts) >= LARGE_CALL
    return run_outside(read_texts, maker, list(drafts)) if is_large else read_texts(maker, drafts)


def read_texts(maker: TokenMaker, drafts: Sequence[CubeDraft]) -> TextIndexes:
    places: dict[int, Sequence[Location]] = {}
    for position, draft in enumerate(drafts):
        with suppress(DetectorFailed):  # asked again where the policy is known, which says what follows
            places[position] = places_in(detector(), texts_of(draft), EVERYWHERE)
    return TextIndexes({text_key(draft): text_index(maker, draft) for draft in drafts}, places)


def changed_reading(cube: Cube, before: CubeVersion, changes: CubeChanges) -> Reading:
    """The texts of a version with a change laid over them. Raises KeyUnavailable."""
    tags = tuple(cube.tags) if isinstance(changes.tags, Unset) else changes.tags
    return Reading(texts_of_words(_changed(_words_of(cube, before), changes), tags), frozenset(_new_fields(changes)))


class Resolver:
    """Look-up of the objects that drafts name, once for each name. `texts`: texts that were prepared.

    findings: of the versions that changes follow, where they were read for all at once.
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

    def settle(self, drafts: Sequence[CubeDraft]) -> None:
        """Make what is missing in one order for all callers, so that two of them never wait for each other."""
        for path in sorted({draft.namespace for draft in drafts}, key=lambda path: path or ""):
            self.namespace(path)
        for subject in sorted({draft.subject for draft in drafts if draft.subject is not None}):
            self.subject_id(subject)

    def namespace(self, path: str | None) -> Namespace:
        if path not in self._namespaces:
            self._namespaces[path] = namespace_for_writing(actor=self.actor, path=path, permission=self.permission)
        return self._namespaces[path]

    def persona(self, reference: str | None) -> Persona | None:
        """None: the one that the actor's key is bound to, if it is bound to one."""
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

    def place(self, draft: CubeDraft) -> Place:
        """Return the place of the draft, looked up once for all drafts with the same place."""
        named = (draft.namespace, draft.persona, draft.subject)
        if named not in self._places:
            self._places[named] = self._place(*named)
        return self._places[named]

    def _place(self, path: str | None, persona_named: str | None, subject: str | None) -> Place:
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
            "type": MemoryType.PLAINTEXT,
            "state": State.GENERATED,
        }
        return Place(namespace, columns, {"namespace": namespace, "persona": persona})


def build_all(*, actor: Actor, drafts: Sequence[CubeDraft], permission: Permission, texts: TextIndexes) -> list[Built]:
    """One Built for each draft, in order. Raises InvalidDraft, Forbidden, KeyUnavailable."""
    resolver = Resolver(actor, permission, texts)
    clean = _screened(resolver, drafts)
    resolver.settle(drafts)
    known = load_duplicate_index(
        actor, resolver.maker, [(draft, resolver.namespace(draft.namespace).id) for draft, _ in clean]
    )
    built: list[Built] = []
    with _naming() as at:
        for at.index, (draft, screened) in enumerate(clean):
            refused_times(draft, known.now)
            _check_place(resolver, draft)
            kept = _message_of_other_text(resolver, draft, clean, built)
            if kept is not None:  # the statement of a text that is not stored
                built.append(kept)
                continue
            sources = _sources(draft, built)
            one = _existing(resolver, known, draft, sources, screened)
            one = one or _build(resolver, known, draft, sources, screened, _gives_orders(resolver.actor, draft, built))
            built.append(one)
            known.remember(draft, one.cube, sources)
    return built


def _screened(resolver: Resolver, drafts: Sequence[CubeDraft]) -> list[tuple[CubeDraft, Screened]]:
    """Find where each draft goes, and what of it may go there: before any lock is taken."""
    screen = Screen(resolver.actor)
    with _naming() as at:
        paths = [resolver.namespace(draft.namespace).path for at.index, draft in enumerate(drafts)]
        placed = zip(drafts, paths, strict=True)
        known = resolver.texts.places
        return [screen.draft(draft, path, known.get(at.index)) for at.index, (draft, path) in enumerate(placed)]


@dataclass
class _At:
    index: int = 0


@contextmanager
def _naming() -> Iterator[_At]:
    """Say which draft it is that something is wrong with."""
    at = _At()
    try:
        yield at
    except Invalid as fault:
        raise InvalidDraft(at.index, fault) from fault


def _message_of_other_text(
    resolver: Resolver, draft: CubeDraft, clean: Sequence[tuple[CubeDraft, Screened]], before: Sequence[Built]
) -> Built | None:
    """The stored message of a derived draft if that has another text, which it keeps; None otherwise."""
    if draft.parent is None or not before[draft.parent].duplicate:
        return None
    parent = before[draft.parent]
    same = resolver.maker.hash(clean[draft.parent][0].content) == bytes(parent.cube.content_hash)
    return None if same else parent


def _sources(draft: CubeDraft, before: Sequence[Built]) -> tuple[SourceRef, ...]:
    """`before`: what was built of the drafts before this one."""
    if draft.parent is None:
        return draft.sources
    parent = before[draft.parent].cube
    return (SourceRef(parent.id, parent.version, draft.parent_kind), *draft.sources)


def _check_place(resolver: Resolver, draft: CubeDraft) -> None:
    """Check the rules of the namespace's kind and its mounts for a writer. Raises Forbidden; Invalid."""
    place, context = resolver.place(draft), resolver.actor.context
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


def _existing(
    resolver: Resolver, known: DuplicateIndex, draft: CubeDraft, sources: Sequence[SourceRef], screened: Screened
) -> Built | None:
    place = resolver.place(draft)
    if place.namespace.kind == NamespaceKind.PIPELINE_CACHE:  # the same result may stand under two keys
        return None
    cube = known.find(draft, place.namespace.id, place.persona_id, sources)
    if cube is None:
        return None
    return Built(
        cube,
        CubeVersion(),
        Words(draft.content),
        Indexed({}, 0),
        duplicate=True,
        findings=screened.findings,
        redacted=screened.redacted,
    )


def _gives_orders(actor: Actor, draft: CubeDraft, before: Sequence[Built]) -> bool:
    """Tell whether a draft enters in quarantine. What is derived from a quarantined one waits without a review."""
    if draft.parent is not None and before[draft.parent].cube.is_quarantined:
        return False
    texts = (draft.content, draft.title, draft.speaker)
    return is_untrusted(actor, draft.source, draft.modality) and any(map(gives_orders, texts))


def _build(
    resolver: Resolver,
    known: DuplicateIndex,
    draft: CubeDraft,
    sources: tuple[SourceRef, ...],
    screened: Screened,
    is_quarantined: bool,
) -> Built:
    place = resolver.place(draft)
    session_token, position = known.place(draft, place.namespace.id)
    cube = row_made(
        Cube,
        {
            **place.columns,
            "id": uuid7(),
            "created_at": known.now,
            "updated_at": known.now,
            "layer": draft.layer,
            "modality": draft.modality,
            "source": draft.source,
            "reader": draft.reader,
            "semantic_type": draft.semantic_type,
            "sensitivity": draft.sensitivity,
            "tags": list(dict.fromkeys(draft.tags)),
            "purpose_tags": [],
            "importance": draft.importance,
            "trust": draft.trust,
            "event_time": draft.event_time,
            "valid_from": draft.valid_from,
            "valid_to": draft.valid_to,
            "expires_at": _expiry(draft, place.namespace, known.now),
            "session_token": session_token,
            "position": position,
            "has_sources": bool(sources),
            "is_quarantined": is_quarantined,
            "is_indexed": not is_quarantined,
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
    return _sealed(
        resolver,
        cube,
        words,
        before=None,
        reason="",
        sources=sources,
        findings=screened.findings,
        redacted=screened.redacted,
    )


def _expiry(draft: CubeDraft, namespace: Namespace, now: datetime) -> datetime | None:
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
) -> Built:
    """The next version of `cube`, with `changes` laid over it. Raises Invalid, Forbidden, KeyUnavailable.

    `findings`: what is known of its personal data, for a redaction; None: what is new is screened. `resolver`: that of
    the other versions of the same call.
    """
    resolver = resolver or Resolver(actor, Permission.MEMORY_CREATE)
    words = _words_of(cube, before)
    for name in changes.given() & {"tags", *CLEAR_FIELDS}:
        value = getattr(changes, name)
        setattr(cube, name, list(dict.fromkeys(value)) if name == "tags" else value)
    if not isinstance(changes.namespace, Unset):
        _move(cube, resolver.namespace(changes.namespace))
    if not isinstance(changes.persona, Unset):
        cube.persona = resolver.persona(changes.persona)
    if not isinstance(changes.subject, Unset):
        cube.subject_id = resolver.subject_id(changes.subject)
    expiry_settle(resolver.policies, cube, born=cube.created_at, asked=not isinstance(changes.expires_at, Unset))
    cube.version = before.number + 1
    was, words = words, _changed(words, changes)
    is_rewritten = findings is None and words.content != was.content  # a redaction rewrites nothing
    cube.is_dialogue_only &= cube.semantic_type == SemanticType.DIALOGUE and not is_rewritten
    redacted = 0
    if findings is None:
        screened, findings = _screened_again(resolver, cube, before, changes, words)
        words, redacted = _reworded(words, screened.texts), screened.redacted
        cube.tags = list(screened.texts.tags)
    cube.is_quarantined = _orders_changed(actor, was, words)
    cube.is_indexed &= not cube.is_quarantined
    return _sealed(resolver, cube, words, before=before, reason=reason, findings=findings, redacted=redacted)


def _orders_changed(actor: Actor, was: Words, words: Words) -> bool:
    """Tell whether a change by an API key brings in a text that gives orders."""
    changed = [new for old, new in zip(_read_texts(was), _read_texts(words), strict=True) if new != old]
    return is_untrusted(actor, Source.API, Modality.TEXT) and any(map(gives_orders, changed))


def _read_texts(words: Words) -> tuple[str, str, str]:
    """The texts that a prompt may show."""
    return words.content, words.title, words.speaker


def _screened_again(
    resolver: Resolver,
    cube: Cube,
    before: CubeVersion,
    changes: CubeChanges,
    words: Words,
) -> tuple[Screened, Sequence[Finding]]:
    """Screen the changed fields; decisions about the other fields stay."""
    new, texts = _new_fields(changes), texts_of_words(words, tuple(cube.tags))
    places = places_prepared(texts, new)
    screened = Screen(resolver.actor).texts(
        texts, new, namespace_path=cube.namespace.path, sensitivity=Sensitivity(cube.sensitivity), places=places
    )
    known = resolver.findings.get(before.id)
    known = findings_of(before) if known is None and new != EVERYWHERE else known or ()
    kept = [one for one in known if one.place.part not in new]
    return screened, [*kept, *screened.findings]


def _new_fields(changes: CubeChanges) -> Collection[PiiField]:
    """The fields to look for personal data in: in another place all of them."""
    moved = changes.given() & {"namespace", "sensitivity"}
    return EVERYWHERE if moved else {name for name in PiiField if str(name) in changes.given()}


def _words_of(cube: Cube, version: CubeVersion) -> Words:
    return words_open(tenant_id=cube.tenant_id, cube_id=cube.id, number=version.number, blob=version.sealed)


def rebuilt(cube: Cube, version: CubeVersion) -> Built:
    """A stored cube with the postings that its words give, as far as the version knows them: what deletes them goes by
    its terms, and words that were stored before a change of the lexicon may give others now."""
    words = _words_of(cube, version)
    maker, known = token_maker(cube.tenant_id), set(version.terms)
    entries = index_of(maker, words, text_index_of(maker, words)).entries
    kept = {term: count for term, count in entries.items() if term in known}
    return Built(cube, version, words, Indexed(kept, cube.term_count))


def refused_times(of: Cube | CubeDraft, now: datetime) -> None:
    """Raises Invalid for an expiry in the past and for a validity that ends before it begins."""
    if of.expires_at is not None and of.expires_at <= now:
        raise Invalid(errors=[FieldError("expires_at", "must be in the future")])
    if of.valid_from and of.valid_to and of.valid_to <= of.valid_from:
        raise Invalid(errors=[FieldError("valid_to", "must be after valid_from")])


def _move(cube: Cube, namespace: Namespace) -> None:
    """A cube takes over how private its new namespace is; what is private belongs to the namespace's owner.

    Whether the actor may give it away, or take it, the caller asks.
    """
    private = namespace.kind == NamespaceKind.PRIVATE
    cube.namespace = namespace
    cube.owner_id = namespace.owner_id if private else cube.owner_id
    cube.access_level = AccessLevel.PRIVATE if private else AccessLevel.SHARED


def _changed(words: Words, changes: CubeChanges) -> Words:
    return replace(
        words,
        content=words.content if isinstance(changes.content, Unset) else changes.content,
        title=words.title if isinstance(changes.title, Unset) else changes.title,
        metadata=words.metadata if isinstance(changes.metadata, Unset) else changes.metadata,
        speaker=words.speaker if isinstance(changes.speaker, Unset) else changes.speaker,
        quotes=words.quotes if isinstance(changes.content, Unset) else (),
    )


def _reworded(words: Words, texts: Texts) -> Words:
    """`words` as the screen leaves them."""
    return replace(
        words,
        content=texts.content,
        title=texts.title,
        metadata=texts.metadata,
        speaker=texts.speaker,
    )


def _sealed(
    resolver: Resolver,
    cube: Cube,
    words: Words,
    *,
    before: CubeVersion | None,
    reason: str,
    sources: tuple[SourceRef, ...] = (),
    findings: Sequence[Finding] = (),
    redacted: int = 0,
) -> Built:
    """Fill in what follows from the words, and make the version row."""
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
    clear = {name: getattr(cube, name) for name in CLEAR_FIELDS}
    scope = key_scope(subject_id=cube.subject_id, persona_member_id=cube.persona.member_id if cube.persona else None)
    sealed = words_seal(tenant_id=cube.tenant_id, cube_id=cube.id, number=cube.version, scope=scope, words=words)
    previous = bytes(before.hash) if before else None
    version = row_made(
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
            "terms": list(indexed.entries),
            "principal_kind": resolver.actor.principal_kind,
            "principal_id": resolver.actor.principal_id,
            "reason": reason,
            "previous_hash": previous,
            "hash": version_hash(previous=previous, sealed=sealed, clear=clear),
        },
        {"cube": cube},
    )
    indexed = Indexed({}, indexed.length) if cube.is_quarantined else indexed  # it enters no index
    return Built(cube, version, words, indexed, sources=sources, findings=tuple(findings), redacted=redacted)
