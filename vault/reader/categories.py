"""Categories that a caller offers for what it adds, as mem0's clients do with `custom_categories`. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vault.content.drafts import CubeDraft
from vault.lexicon.tokens import terms

MOST_TAGS = 50  # of a memory


def add_categories(drafts: Sequence[CubeDraft], categories: Mapping[str, str]) -> list[CubeDraft]:
    """Return the drafts with the names of the categories that share a word with their text as tags.

    categories: descriptions by name. Words are compared by their stems, without stop words. Dialogue gets none.
    """
    words = {name: _words_of(f"{name} {description}") for name, description in categories.items()}
    return [draft if draft.is_dialogue_only else _add_tags(draft, words) for draft in drafts]


def _add_tags(draft: CubeDraft, words: Mapping[str, frozenset[str]]) -> CubeDraft:
    said = _words_of(draft.content)
    fitting = [name for name, named in words.items() if said & named]
    return replace(draft, tags=tuple(dict.fromkeys([*draft.tags, *fitting]))[:MOST_TAGS])


def _words_of(text: str) -> frozenset[str]:
    return frozenset(terms(text.replace("_", " ")))
