"""Categories that a caller offers (mem0 docs/platform/features/custom-categories.mdx)."""

from vault.content.drafts import CubeDraft
from vault.reader.categories import add_categories

HEALTH = {
    "symptoms": "Reported physical or mental symptoms",
    "medications": "Prescriptions, dosages, and adherence",
    "appointments": "Scheduled visits and follow-ups",
}


def test_memory_is_tagged_with_the_categories_whose_words_it_has() -> None:
    drafts = [
        CubeDraft("My doctor raised the dosage.", tags=("doctor",)),
        CubeDraft("The visit is on the 14th, and the symptom is gone."),
        CubeDraft("I play the oboe."),
        CubeDraft("What of my symptoms?", is_dialogue_only=True),
    ]
    tags = [draft.tags for draft in add_categories(drafts, HEALTH)]
    assert tags == [("doctor", "medications"), ("symptoms", "appointments"), (), ()]
    assert add_categories(drafts, {}) == drafts
