"""Tests of the baselines: each finds the best first, because a weak baseline would flatter the product."""

from pathlib import Path

import psycopg

from benchmarks.baselines import Bm25, ExactCosine
from benchmarks.floor import COSINE, Asked, ask, hybrid, scene_of
from benchmarks.locomo import Turn, conversations
from benchmarks.tenants import drafts_of
from memos_web.settings.databases import APP_ROLE
from tests.factories import World
from tests.harness.databases import Clone
from tests.vault.outbox import run_jobs
from vault.cubes.services import cubes_add

QUESTION = "Which boat was sold in Turin?"


def turns_of(locomo_file: Path) -> tuple[Turn, ...]:
    return conversations(locomo_file)[0].turns


def test_bm25_puts_first_what_has_most_and_rarest_words_of_the_question(locomo_file: Path) -> None:
    found = Bm25(turns_of(locomo_file)).search(QUESTION, 4)
    assert found == ["D2:2", "D1:2"]  # the one has boat, sold and Turin, the other boats alone


def test_exact_cosine_puts_first_what_is_nearest(locomo_file: Path) -> None:
    turns = turns_of(locomo_file)
    for turn in turns:
        found = ExactCosine(turns).search(f"{turn.speaker}: {turn.text}", 4)
        assert found[0] == turn.id
        assert len(found) == 4


def test_the_floor_finds_by_words_and_by_vectors(world: World, database: Clone, locomo_file: Path) -> None:
    cubes_add(actor=world.alice.actor, drafts=drafts_of(turns_of(locomo_file), "/floor"))
    with database.connect(APP_ROLE) as raw:
        assert _rows(raw, world, hybrid(by_index=False)) == 2  # no vectors yet: words alone
        run_jobs()
        assert _rows(raw, world, hybrid(by_index=False)) == 4
        assert _rows(raw, world, COSINE) == 4
        assert _rows(raw, world, hybrid(by_index=False), limit=3) == 3


def _rows(raw: psycopg.Connection, world: World, statement: str, limit: int = 10) -> int:
    found: Asked = ask(raw, statement, scene_of(world.alice.actor), QUESTION, limit=limit)
    return found.rows
