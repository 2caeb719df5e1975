"""Neighbours of written cubes: earlier ones of the session, and similar ones.

The cost of each statement is bounded by the number of given cubes, whatever else the tenant has. Use inside the
caller's transaction.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from uuid import UUID

from django.db import connection

from governance.keys.services import TokenMaker
from vault.content.words import Words, words_open
from vault.cubes.lookup import keep_cubes
from vault.graph.rules import Statement
from vault.index.terms import WORD_KIND
from vault.lexicon.tokens import terms
from vault.models import Cube, CubeVersion
from vault.vocabulary import AccessLevel

WORDS_COMPARED = 12  # of one cube, to find statements alike
NEWEST = 16  # cubes looked at for each such word
WINDOW = 256  # and within so many of the newest of the tenant
SIMILAR = 6  # cubes opened to be compared with one

SHARED_WORDS = f"""
SELECT asked.term, asked.namespace_id, ARRAY(
  SELECT recent.cube_id FROM (
    SELECT posting.cube_id, posting.namespace_id, posting.frequency FROM vault_posting AS posting
    WHERE posting.tenant_id = %(tenant)s AND posting.term = asked.term ORDER BY posting.cube_id DESC LIMIT {WINDOW}
  ) AS recent
  WHERE recent.namespace_id = asked.namespace_id AND recent.frequency > 0 LIMIT {NEWEST})
FROM unnest(%(terms)s::bigint[], %(namespaces)s::uuid[]) AS asked (term, namespace_id)
"""
JUST_BEFORE = """
SELECT asked.cube_id, before.id
FROM unnest(%s::uuid[], %s::bigint[], %s::integer[]) AS asked (cube_id, session_token, position)
  JOIN vault_cube AS before ON before.tenant_id = %s AND before.session_token = asked.session_token
    AND before.position = asked.position - 1 AND before.deleted_at IS NULL
"""
JUST_AFTER = """
SELECT after.id FROM vault_cube AS asked JOIN vault_cube AS after
  ON after.tenant_id = asked.tenant_id AND after.session_token = asked.session_token
    AND after.position = asked.position + 1 AND after.deleted_at IS NULL
WHERE asked.tenant_id = %s AND asked.id = ANY(%s)
"""


@dataclass(frozen=True)
class LinkableCube:
    """The version of a cube, and its readers."""

    version: int
    border: Hashable


Sharers = Mapping[UUID, Mapping[UUID, int]]  # cube → the others that share something with it, and how many things


def open_words(cubes: Collection[Cube]) -> dict[UUID, Words]:
    """Return the decrypted words of each cube's current version, without erased ones. Raises KeyUnavailable."""
    present = {cube.id: cube.version for cube in cubes}
    rows = CubeVersion.objects.filter(cube_id__in=present).values_list("tenant_id", "cube_id", "number", "sealed")
    return {
        cube_id: words_open(tenant_id=tenant_id, cube_id=cube_id, number=number, blob=bytes(sealed))
        for tenant_id, cube_id, number, sealed in rows
        if number == present[cube_id] and sealed
    }


def linkable_cubes(cube_ids: Collection[UUID]) -> dict[UUID, LinkableCube]:
    """Return the existing cubes at their current version, and keep them until the transaction ends. Two queries."""
    keep_cubes(cube_ids)
    columns = ("id", "version", "namespace__kind", "namespace__owner_id", "access_level", "owner_id")
    rows = Cube.objects.filter(id__in=cube_ids, deleted_at=None).values_list(*columns)
    return {cube_id: LinkableCube(version, _border_key(*place)) for cube_id, version, *place in rows}


def _border_key(kind: str, namespace_owner: UUID | None, access_level: str, owner: UUID | None) -> Hashable:
    """Return a key that is equal for cubes with the same readers. Only its owner reads a private cube, in any
    namespace.
    """
    return kind, namespace_owner, owner if access_level == AccessLevel.PRIVATE else None


def make_statement(cube: Cube, words: Words | None = None) -> Statement:
    """Return a cube with its namespace as the rules of links take it."""
    place = cube.namespace
    voice = cube.subject_id or tuple(sorted(cube.speaker_marks)) or None
    return Statement(
        id=cube.id,
        border=_border_key(place.kind, place.owner_id, cube.access_level, cube.owner_id),
        voice=voice,
        text=words.content if words else "",
    )


def sharing_words(maker: TokenMaker, cubes: Collection[Cube], words: Mapping[UUID, Words]) -> Sharers:
    """Return the cubes that share words, among the newest of the same namespace: for each cube the SIMILAR best. One
    query.

    Cubes without a known speaker or subject have none: they cannot contradict anything.
    """
    voiced = [cube for cube in cubes if cube.subject_id or cube.speaker_marks]
    used = {cube.id: _word_tokens(maker, words[cube.id]) for cube in voiced}
    shared = _find_sharers(voiced, used)
    return {cube_id: _keep_best(others) for cube_id, others in shared.items()}


def previous_in_session(cubes: Sequence[Cube]) -> dict[UUID, UUID]:
    """Return the cube before each in its session, if there is one. One query."""
    asked = [cube for cube in cubes if cube.session_token is not None and cube.position]
    if not asked:
        return {}
    ids, tokens, positions = zip(*((cube.id, cube.session_token, cube.position) for cube in asked), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(JUST_BEFORE, [list(ids), list(tokens), list(positions), asked[0].tenant_id])
        return dict(cursor.fetchall())


def next_in_session(tenant_id: UUID, cube_ids: Sequence[UUID]) -> list[UUID]:
    """Return the next message of each in its session, which links to it. One query."""
    with connection.cursor() as cursor:
        cursor.execute(JUST_AFTER, [tenant_id, list(cube_ids)])
        return [row[0] for row in cursor.fetchall()]


def _word_tokens(maker: TokenMaker, words: Words) -> list[int]:
    distinct = list(dict.fromkeys(terms(words.content)))[:WORDS_COMPARED]
    return [maker.token(WORD_KIND, term) for term in distinct]


def _find_sharers(cubes: Collection[Cube], tokens: Mapping[UUID, Collection[int]]) -> Sharers:
    """Return the cubes that share words with each cube, and the number of words. One look-up for each word and
    namespace.
    """
    asked: defaultdict[tuple[int, UUID], list[UUID]] = defaultdict(list)
    for cube in cubes:
        for term in tokens[cube.id]:
            asked[term, cube.namespace_id].append(cube.id)
    shared: defaultdict[UUID, Counter[UUID]] = defaultdict(Counter)
    if not asked:
        return {}
    tenant_id = next(iter(cubes)).tenant_id
    wanted, places = [term for term, _ in asked], [place for _, place in asked]
    with connection.cursor() as cursor:
        cursor.execute(SHARED_WORDS, {"tenant": tenant_id, "terms": wanted, "namespaces": places})
        for term, place, bearers in cursor.fetchall():
            for cube_id in asked[term, place]:
                shared[cube_id].update(bearers)
    for cube_id, others in shared.items():
        del others[cube_id]  # it is no other
    return {cube_id: others for cube_id, others in shared.items() if others}


def _keep_best(others: Mapping[UUID, int]) -> dict[UUID, int]:
    """Return the SIMILAR best; of equals the newest. Comparing numbers is much faster than comparing ids."""
    return dict(nlargest(SIMILAR, others.items(), key=lambda each: (each[1], each[0].int)))
