"""A pack's page and its trials read excerpts of the verified file: never the file, and nothing that was changed."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from governance.database import acting
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import offer_pack, subscribe
from tests.vault.store.test_watermarks import COUNT, offer_marked_pack
from vault.models import PackVersion
from vault.store import excerpts
from vault.store.wordings import has_second, wordings_open

Superuser = Callable[[], psycopg.Connection]
TEXTS = ("The heron nests by the mill.", "The heron fishes at dawn.", "The heron sleeps on one leg.")
CHANGED = "overlay({0} placing '\\x0000'::bytea from octet_length({0}) - 40)"


@pytest.fixture
def publication(charlie: Contract) -> str:
    return offer_pack(charlie, *TEXTS)


def show(client: Contract, publication: str) -> Any:
    return client.get(f"publications/{publication}/")


def ask(client: Contract, publication: str) -> Any:
    return client.post(f"publications/{publication}/try/", {"queries": ["Where does the heron nest?"]})


READS = {"preview": show, "trial": ask}


def change_version(superuser: Superuser, column: str, value: str) -> None:
    superuser().execute(f"UPDATE vault_packversion SET {column} = {value}")


def test_the_file_is_not_opened_by_page_or_trial(olivia: Contract, publication: str, superuser: Superuser) -> None:
    change_version(superuser, "sealed", CHANGED.format("sealed"))
    assert {item["content"] for item in show(olivia, publication).json["samples"]} == set(TEXTS)
    (result,) = ask(olivia, publication).json["results"]
    assert result["with_pack"][0]["text"] == TEXTS[0]
    assert olivia.post("subscriptions/", {"publication": publication}).status == 202
    run_jobs()
    assert olivia.get("memories/?namespace=/packs").json["count"] == 0, "what is installed is verified again"


def test_samples_show_no_more_of_a_pack_than_a_trial(olivia: Contract, charlie: Contract) -> None:
    texts = [
        f"Gull {number} sleeps " + "on the roof of the mill " * 9 + f"until {number} o'clock." for number in range(50)
    ]
    samples = show(olivia, offer_pack(charlie, *texts)).json["samples"]
    assert len(samples) == len(texts) // excerpts.SHARE
    assert all(item["content"].endswith("…") and len(item["content"]) <= excerpts.EXTRACT + 1 for item in samples)


@each_case("part", [*READS])
def test_changed_excerpt_is_not_shown(olivia: Contract, publication: str, superuser: Superuser, part: str) -> None:
    change_version(superuser, part, CHANGED.format(part))
    assert (READS[part](olivia, publication).status, READS[part](olivia, publication).code) == (503, "key_unavailable")


@each_case(("part", "column"), [(part, column) for part in READS for column in ("digest", "key_id")])
def test_excerpt_of_another_file_is_not_shown(
    olivia: Contract, publication: str, superuser: Superuser, part: str, column: str
) -> None:
    change_version(superuser, column, f"'{'0' * 16}'")
    assert READS[part](olivia, publication).status == 503


def test_excerpt_of_another_version_is_not_shown(olivia: Contract, charlie: Contract, superuser: Superuser) -> None:
    first, second = offer_pack(charlie, *TEXTS), offer_pack(charlie, "A gull.", name="gulls")
    swap = "SELECT {0} FROM vault_packversion AS other WHERE other.id <> vault_packversion.id"
    for part in READS:
        change_version(superuser, part, f"({swap.format(part)})")
    for publication in (first, second):
        assert {show(olivia, publication).status, ask(olivia, publication).status} == {503}


def test_older_version_gets_its_excerpts_once(olivia: Contract, publication: str, superuser: Superuser) -> None:
    change_version(superuser, "preview", "''")
    change_version(superuser, "trial_model", "''")
    assert len(show(olivia, publication).json["samples"]) == len(TEXTS)
    waiting = ask(olivia, publication)
    assert (waiting.status, waiting.headers["Retry-After"]) == (503, "60")
    run_jobs()
    assert ask(olivia, publication).status == 200
    change_version(superuser, "sealed", CHANGED.format("sealed"))
    assert len(show(olivia, publication).json["samples"]) == len(TEXTS)


def test_samples_and_trials_have_the_wording_of_their_reader(world: World, olivia: Contract, charlie: Contract) -> None:
    _, publication = offer_marked_pack(olivia)
    with acting(world.olivia.actor):
        wordings = wordings_open(PackVersion.objects.get(number="1.0.0"))
    expected = {wording.content for key, wording in wordings.items() if has_second(world.acme.id, world.other.id, key)}
    samples = show(charlie, publication).json["samples"]
    seconds = {wording.content for wording in wordings.values()}
    assert {item["content"] for item in samples} & seconds <= expected
    subscribe(charlie, publication)
    installed = {row["content"] for row in charlie.get(f"memories/?page_size={COUNT}").json["results"]}
    assert {item["content"] for item in samples} <= installed
    (result,) = charlie.post(f"publications/{publication}/try/", {"queries": ["pool"]}).json["results"]
    shown = [memory["text"] for memory in result["with_pack"] if memory["of_pack"]]
    assert shown
    assert all(any(text.startswith(extract.rstrip("…")) for text in installed) for extract in shown)


# Broken on purpose


@each_case("part", [*READS])
def test_excerpt_whose_origin_is_not_checked_shows(
    olivia: Contract, publication: str, superuser: Superuser, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(excerpts, "_check_origin", lambda row, stated: None)
    change_version(superuser, "digest", f"'{'0' * 64}'")
    assert READS[part](olivia, publication).status == 200


def test_page_that_reads_the_file_shows(
    olivia: Contract, publication: str, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vault.store.catalogue.preview_open", lambda row, recipient: None)
    change_version(superuser, "sealed", CHANGED.format("sealed"))
    assert show(olivia, publication).status == 503
