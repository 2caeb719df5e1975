"""The times that a question names decide between memories that its words tell alike."""

from datetime import UTC, datetime

from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search

TRIPS = {
    "A trip to a lake. 去湖边旅行。": datetime(1960, 3, 1, tzinfo=UTC),
    "A trip to a town. 去城里旅行。": datetime(2023, 5, 7, 18, tzinfo=UTC),
    "A trip to a hill. 去山上旅行。": datetime(2023, 5, 10, tzinfo=UTC),
    "A trip to a moor. 去荒野旅行。": datetime(2024, 8, 2, tzinfo=UTC),
}


@each_case(
    ("question", "place"),
    [
        ("Which trip before 1990?", "lake"),
        ("Which trip on 7 May 2023?", "town"),
        ("Which trip three days after 7 May 2023?", "hill"),
        ("Which trip since June 2024?", "moor"),
        ("Which trip between June and September 2024?", "moor"),
        ("1990年以前的旅行", "lake"),
        ("二〇二三年五月七日的旅行", "town"),
        ("2024年以来的旅行", "moor"),
    ],
)
def test_memory_of_the_asked_time_ranks_first(world: World, question: str, place: str) -> None:
    drafts = [CubeDraft(content=content, event_time=time) for content, time in TRIPS.items()]
    cubes_add(actor=world.alice.actor, drafts=drafts)
    run_jobs()
    first, *_ = memories_search(actor=world.alice.actor, search=SearchQuery(query=question))
    assert place in first.view.words.content
