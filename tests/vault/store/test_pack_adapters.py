"""Packs carry adapters: signed, with a statement about data subjects, and approved again where they are installed."""

import hashlib
import io
import zipfile
from typing import Any
from uuid import UUID, uuid4

import pytest

from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.exchange.test_exchange import import_file
from tests.vault.forms.stored import form_add
from tests.vault.forms.test_adapters import GOOD, train, used_adapter
from tests.vault.forms.test_caches import engine, persona_of
from tests.vault.forms.twin import EngineTwin
from tests.vault.outbox import run_jobs
from tests.vault.store.hostile import KEY, PUBLIC, STATED
from tests.vault.store.pack_factories import (
    TEXTS,
    build_version,
    memories_of,
    pack_of,
    publish_version,
    subscribe,
)
from vault.store.files import ADAPTER, AdapterStatement, Item, PackInvalid, file_copy, file_read, file_write
from vault.vocabulary import MemoryType

__all__ = ["engine"]
PLACE = "/packs/other/herons"
QUESTION = "Where does the heron nest?"


def adapter_of(client: Contract, ids: list[str]) -> str:
    """The id of an approved adapter of these memories."""
    run_jobs()
    form = train(client, ids)
    assert client.post(f"forms/{form['id']}/approve/").status == 200
    return str(form["id"])


def offer(client: Contract, **fields: Any) -> str:
    """The id of a publication of three memories and their adapter."""
    ids = memories_of(client, *TEXTS, **fields)
    version = build_version(client, pack_of(client), ids, adapter=adapter_of(client, ids))
    assert version["state"] == "ready", version
    return str(publish_version(client, version)["id"])


def test_installed_adapter_carries_its_report_needs_approval_answers_and_ends_with_the_contract(
    engine: EngineTwin, charlie: Contract, olivia: Contract
) -> None:
    engine.report = GOOD
    made = subscribe(olivia, offer(charlie))
    (form,) = olivia.get("forms/").json["results"]
    assert (form["pack"], form["report"], form["approved_at"]) == ("other/herons", GOOD, None)
    assert len(form["parents"]) == len(TEXTS)
    persona = {"persona": persona_of(olivia)}
    assert olivia.patch(f"forms/{form['id']}/", persona).status == 409
    assert olivia.post(f"forms/{form['id']}/approve/").status == 200
    assert olivia.patch(f"forms/{form['id']}/", persona).status == 200
    conversation = olivia.post("conversations/", {}).json["id"]
    assert olivia.post("mounts/", {"namespace": PLACE, "conversation": conversation}).status == 201
    assert olivia.post(f"conversations/{conversation}/turns/", {"content": QUESTION}).status == 201
    assert used_adapter(engine)
    assert TEXTS[0] in olivia.get(f"forms/{form['id']}/text/").json["text"]
    assert olivia.delete(f"subscriptions/{made['id']}/").status in {200, 202, 204}
    run_jobs()
    assert olivia.get("forms/").json["results"] == []  # and nothing is trained anew
    assert len(charlie.get("forms/").json["results"]) == 1


def test_pages_of_a_version_name_its_adapter(engine: EngineTwin, world: World, olivia: Contract) -> None:
    adam = person_add(world.acme, "adam@acme.example", RoleName.ADMIN)
    engine.report = GOOD
    ids = memories_of(olivia, *TEXTS)
    pack = pack_of(olivia)
    version = build_version(olivia, pack, ids, adapter=adapter_of(olivia, ids))
    browser, words = signed_in(world.olivia), "3 memories and 1 adapter for tiny"
    for page in (f"/store/own/{pack}/", f"/store/own/{pack}/1.0.0/"):
        assert words in browser.get(page).content.decode()
    offered = browser.get(f"/store/own/{pack}/1.0.0/offer/").content.decode()
    assert "1 adapter for tiny leaves with them." in offered
    waiting = publish_version(olivia, version)
    assert words in signed_in(adam).get("/reviews/").content.decode()
    assert Contract(key=adam.key.text).post(f"publications/{waiting['id']}/approve/").status == 200
    assert words in signed_in(world.charlie).get("/store/acme/herons/").content.decode()


def test_adapter_of_an_imported_file_is_named_among_what_is_left_out(world: World, olivia: Contract) -> None:
    result = import_file(olivia, write_file(), format="mempack")
    assert (result["counts"]["stored"], result["left_out"]) == (3, {"adapter": 1})
    (job,) = olivia.get("jobs/?kind=memories.import").json["results"]
    page = signed_in(world.olivia).get(f"/exchange/imports/{job['id']}/").content.decode()
    assert "an adapter, which comes only with a subscription to its pack" in page


def test_adapter_of_memories_about_a_person_leaves_in_no_pack(engine: EngineTwin, charlie: Contract) -> None:
    engine.report = GOOD
    ids = memories_of(charlie, *TEXTS[:2])
    about = charlie.add(TEXTS[2], namespace="/birds", subject="case 17")["id"]
    adapter = adapter_of(charlie, [*ids, about])
    pack = pack_of(charlie)
    body = {"version": "1.0.0", "ids": [*ids, about], "adapter": adapter, "subjects": "anonymise"}
    refused = charlie.post(f"packs/{pack}/versions/", body)
    assert refused.status == 409
    assert "about people" in refused.json["detail"]


def test_adapter_of_a_memory_that_does_not_leave_stops_the_version(engine: EngineTwin, charlie: Contract) -> None:
    engine.report = GOOD
    ids = memories_of(charlie, *TEXTS)
    adapter = adapter_of(charlie, ids)
    version = build_version(charlie, pack_of(charlie), ids[:2], adapter=adapter)
    assert (version["state"], version["report"]["adapter"]) == ("blocked", "memories")


def test_subscriber_who_selects_a_part_gets_no_adapter(engine: EngineTwin, charlie: Contract, olivia: Contract) -> None:
    engine.report = GOOD
    subscribe(olivia, offer(charlie, tags=["birds"]), query="dawn")
    assert olivia.get("forms/").json["results"] == []


def test_unapproved_or_foreign_adapter_is_refused(world: World, charlie: Contract, olivia: Contract) -> None:
    ids = memories_of(charlie, TEXTS[0])
    own = memories_of(olivia, TEXTS[0])
    run_jobs()
    form = form_add(world.charlie.actor, [UUID(ids[0])], kind=MemoryType.PARAMETER)
    body = {"version": "1.0.0", "ids": ids, "adapter": str(form.id)}
    assert charlie.post(f"packs/{pack_of(charlie)}/versions/", body).status == 409
    assert olivia.post(f"packs/{pack_of(olivia)}/versions/", body | {"ids": own}).status == 404


def write_file(**changes: Any) -> bytes:
    items = [Item(uuid4(), text) for text in TEXTS]
    content = b"tensors"
    statement = {
        "title": "Herons",
        "model": "tiny",
        "fingerprint": "f" * 64,
        "digest": hashlib.sha256(content).hexdigest(),
        "memories": tuple(item.id for item in items),
        "report": GOOD,
    }
    stated = {**STATED, "adapter": AdapterStatement(**{**statement, **changes})}
    return file_write(stated, items, public_key=PUBLIC, sign=KEY.sign, adapter=content)


def test_file_with_an_adapter_is_read_and_its_copies_verify() -> None:
    read = file_read(write_file())
    assert read.adapter == b"tensors"
    assert read.manifest.minimum_product_version == "0.3.0"
    assert file_read(file_copy(read, read.items)) == read


@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"memories": (uuid4(),)}])
def test_adapter_other_than_the_signed_one_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PackInvalid):
        file_read(write_file(**change))


def test_file_without_the_stated_adapter_or_with_an_unstated_one_is_refused() -> None:
    whole = io.BytesIO(write_file())
    for name in (ADAPTER, "other.safetensors"):
        target = io.BytesIO()
        with zipfile.ZipFile(whole) as source, zipfile.ZipFile(target, "w") as made:
            for entry in source.infolist():
                if entry.filename != ADAPTER:
                    made.writestr(entry.filename, source.read(entry))
                elif name != ADAPTER:
                    made.writestr(name, b"tensors")
        with pytest.raises(PackInvalid):
            file_read(target.getvalue())
