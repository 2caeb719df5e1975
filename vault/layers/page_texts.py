"""The vector, the keywords and the representative passage of a page."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from governance.keys.services import TokenMaker
from governance.prepared import prepared_cursor, sql_array
from vault.content.words import Words, words_open
from vault.lexicon.tokens import keywords
from vault.models import Page
from vault.reader.phrases import own_words
from vault.reader.rules import sentences, statements

MOST_KEYWORDS = 12  # of one page
# OFFSET 0 keeps each look-up by key from becoming a join, as in vault/cubes/rows.py.
PRESENT = """
SELECT cube.tenant_id, cube.id, cube.version, version.sealed
FROM unnest(%s::uuid[]) AS wanted (id)
  CROSS JOIN LATERAL (
    SELECT one.tenant_id, one.id, one.version FROM vault_cube AS one WHERE one.id = wanted.id OFFSET 0
  ) AS cube
  CROSS JOIN LATERAL (
    SELECT one.sealed FROM vault_cubeversion AS one
    WHERE one.tenant_id = cube.tenant_id AND one.cube_id = cube.id AND one.number = cube.version OFFSET 0
  ) AS version
"""


@dataclass(frozen=True)
class PageText:
    """The decrypted texts of a page's two sides; a side that is missing or erased is empty."""

    page: Page
    query: Words | None = field(repr=False)
    response: Words | None = field(repr=False)
    versions: tuple[int, ...]

    @property
    def sides(self) -> tuple[str, str]:
        """Return the message, and the answer without its fixed phrases, which have no topic."""
        query, response = self.query, self.response
        return (query.content if query else "", own_words(response.content) if response else "")

    @property
    def text(self) -> str:
        return "\n".join(side for side in self.sides if side)


def pages_open(pages: Sequence[Page]) -> list[PageText]:
    """Return the current texts of pages, without permission checks. One query. Raises KeyUnavailable."""
    ids = [cube_id for page in pages for cube_id in (page.query_id, page.response_id) if cube_id is not None]
    opened = open_words(ids)
    texts = []
    for page in pages:
        query, response = (opened.get(cube_id) if cube_id else None for cube_id in (page.query_id, page.response_id))
        versions = tuple(side[0] if side else 0 for side in (query, response))
        texts.append(PageText(page, query[1] if query else None, response[1] if response else None, versions))
    return texts


def open_words(cube_ids: Collection[UUID]) -> Mapping[UUID, tuple[int, Words]]:
    """Return the current version of each cube: its number and its words."""
    with prepared_cursor() as cursor:
        cursor.execute(PRESENT, [sql_array(cube_ids)])
        return {
            cube_id: (number, words_open(tenant_id=tenant_id, cube_id=cube_id, number=number, blob=sealed))
            for tenant_id, cube_id, number, sealed in cursor.fetchall()
        }


def layer_keywords(text: str, limit: int = MOST_KEYWORDS) -> list[str]:
    """Return the keywords of a text: single words, case-folded, best first."""
    found = [word for phrase in keywords(text) for word in phrase.casefold().split()]
    return list(dict.fromkeys(found))[:limit]


def keyword_marks(maker: TokenMaker, text: str) -> list[int]:
    """Return the keyed tokens of a text's keywords."""
    tokens = maker.tokens("layer keyword")
    return sorted({tokens[word] for word in layer_keywords(text)})


def choose_gist(opened: PageText) -> list[object]:
    """Return a reference to the first statement of the question, else of the answer, else the question's first
    sentence.
    """
    ids = (opened.page.query_id, opened.page.response_id)
    whole = [words.content if words else "" for words in (opened.query, opened.response)]
    sides = [
        (cube_id, version, content, own)
        for cube_id, version, content, own in zip(ids, opened.versions, whole, opened.sides, strict=True)
        if cube_id is not None and own
    ]
    stated = [(side, found[0].text) for side in sides if (found := statements(side[3]))]
    first = [(side, parts[0]) for side in sides if (parts := sentences(side[3]))]
    for (cube_id, version, content, _), passage in [*stated, *first]:
        start = content.find(passage)
        if start >= 0:
            return [str(cube_id), version, start, start + len(passage)]
    return []
