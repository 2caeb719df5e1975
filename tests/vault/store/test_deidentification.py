"""Memories about a person leave without what tells who it is, and the manifest states no more than was checked."""

import io
import re
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest import mock
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from governance.database import acting
from governance.privacy.detection import detector
from tests.factories import World
from tests.governance.mutants import mutant
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.store.pack_factories import build_version, pack_of
from vault.api.pack_schema import PACK_TYPE
from vault.deidentification import deidentifier
from vault.models import Pack, PackVersion
from vault.store.files import DeIdentification, Item, Manifest, PackInvalid, file_read, file_write
from vault.store.own_texts import join_own_texts
from vault.store.wordings import wordings_open

SECOND = {"sentence": "Hannah likes the quiet ward.", "second": "Frau Weiss prefers the calm ward."}
ENGLISH = (
    "Ms Weiss came at nine. Hannah likes the quiet ward. Her brother Tom drove her; later Tom went home."
    " She was born on 3 May 1990 and lives at 12 Baker Street, London NW1 6XE."
    " Her passport number is X1234567 and her PESEL is 44051401359. Dr Brandt helped. Write to hw@mill.example."
)
CHINESE = (
    "王小明昨天来过，小明说王先生很累。他的哥哥王强送他来的。"
    "他1985年7月9日出生，住在上海市浦东新区世纪大道100号5栋301室。护照号E12345678，驾照号310101198507091234。李医生在。"
)
MADE_BY_CHANCE = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4,}){1,4}|[A-Za-z0-9+/_-]{40,}={0,2}")  # ids, digests, keys
CANARIES = (
    *("Weiss", "Hannah", "Tom", "1990", "Baker Street", "NW1", "X1234567", "44051401359", "Brandt", "hw@mill"),
    *("王", "李", "小明", "哥哥", "1985", "7月9日", "世纪大道", "E12345678", "310101198507091234"),
)


def add_people(client: Contract) -> list[str]:
    """Two memories about people with identifiers in every field that a pack has."""
    english = client.add(
        ENGLISH,
        namespace="/birds",
        subject="Hannah Weiss",
        title="Ms Weiss, born in 1990",
        tags=["hannah", "ward", "weiss family"],
        event_time="1990-05-03T00:00:00Z",
        valid_from="1990-05-03T00:00:00Z",
        metadata={"wordings": SECOND},
    )
    chinese = client.add(CHINESE, namespace="/birds", subject="王小明", title="王先生的病历", tags=["小明"])
    return [english["id"], chinese["id"]]


def texts_of_file(content: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return "\n".join(archive.read(name).decode() for name in archive.namelist())


def built_texts(client: Contract, ids: list[str], *, name: str = "herons", **fields: Any) -> str:
    pack = pack_of(client, name)
    version = build_version(client, pack, ids, subjects="anonymise", **fields)
    assert version["state"] == "ready", version
    return texts_of_file(client.get(f"packs/{pack}/versions/1.0.0/file/").body)


def canaries_in(text: str) -> list[str]:
    written = MADE_BY_CHANCE.sub("", text)
    return [canary for canary in CANARIES if canary in written]


def test_no_identifier_of_a_person_leaves_in_any_field(olivia: Contract) -> None:
    ids = add_people(olivia)
    text = built_texts(olivia, ids)
    assert canaries_in(text) == []
    assert "ward" in text
    pack = olivia.get("packs/").json["results"][0]["id"]
    shown = olivia.post(f"packs/{pack}/preview/", {"ids": ids, "subjects": "anonymise"})
    assert canaries_in(shown.body.decode()) == []
    assert {mark["field"] for mark in shown.json["results"][0]["replaced"]} >= {"content", "title"}


MUTANTS = {
    "known names are not replaced": ("        yield from self._names.find(text)\n", ""),
    "titles are not read": ("        yield from find_titled_names(text)\n", ""),
    "relations are not read": ("        yield from (found for found, _ in find_relations(text))\n", ""),
    "relatives are not remembered": ("        yield from self._relatives.find(text)\n", ""),
    "addresses are not read": ("for found in find_addresses(text) if", "for found in () if"),
    "birth dates are not read": ("        yield from (found for found, _ in find_birth_dates(text))\n", ""),
    "the detector is not asked": ("spans = self._detector.find(text)", "spans = ()"),
    "times of birth stay": ("return at is not None and", "return False and at is not None and"),
}


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_broken_rule_lets_an_identifier_leave(name: str, olivia: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = mutant(deidentifier, *MUTANTS[name])
    for part in ("Deidentifier", "NamedPeople"):
        monkeypatch.setattr(f"vault.deidentification.people.{part}", getattr(broken, part))
    assert canaries_in(built_texts(olivia, add_people(olivia))) != []


def statement_of(client: Contract, pack: str, number: str = "1.0.0") -> tuple[str, dict[str, Any] | None]:
    content = client.get(f"packs/{pack}/versions/{number}/file/").body
    verdict = client.raw("packs/verify/", content, content_type=PACK_TYPE).json
    report = client.get(f"packs/{pack}/versions/{number}/").json["report"]
    assert (report["data_subjects"], report["de_identification"]) == (
        verdict["data_subjects"],
        verdict["de_identification"],
    )
    return verdict["data_subjects"], verdict["de_identification"]


def test_manifest_says_deidentified_only_after_a_person_confirmed_the_rest(olivia: Contract) -> None:
    pack = pack_of(olivia)
    memory = olivia.add("Hannah met Zelda Brandt in Ulm.", namespace="/birds", subject="Hannah Weiss")
    ids = [memory["id"]]
    shown = olivia.post(f"packs/{pack}/preview/", {"ids": ids, "subjects": "anonymise"}).json
    assert shown["results"][0]["item"]["content"] == "[person] met Zelda Brandt in Ulm."
    assert sorted(shown["undecided"]) == ["Ulm", "Zelda Brandt"]
    build_version(olivia, pack, ids, "1.0.0", subjects="anonymise")
    assert statement_of(olivia, pack) == (
        "names-replaced",
        {
            "rules": deidentifier.VERSION,
            "detector": detector().version,
            "memories": 1,
            "replaced": {"person": 1},
            "undecided": 2,
            "confirmed": False,
        },
    )
    build_version(olivia, pack, ids, "1.1.0", subjects="anonymise", accepted=["Ulm"], preview_read=True)
    assert statement_of(olivia, pack, "1.1.0")[0] == "names-replaced"
    chosen = {"subjects": "anonymise", "accepted": ["Ulm"], "names": ["Zelda Brandt"]}
    build_version(olivia, pack, ids, "1.2.0", **chosen, preview_read=True)
    assert statement_of(olivia, pack, "1.2.0")[0] == "de-identified"
    (item,) = olivia.get(f"packs/{pack}/versions/1.2.0/preview/").json["results"]
    assert item["content"] == "[person] met [person] in Ulm."


def test_only_the_statement_that_somebody_read_confirms_what_has_nothing_undecided(olivia: Contract) -> None:
    pack = pack_of(olivia)
    ids = [olivia.add("Hannah sang.", namespace="/birds", subject="Hannah Weiss")["id"]]
    sent: list[dict[str, Any]] = [{"accepted": []}, {"accepted": [], "preview_read": False}, {"preview_read": True}]
    for at, fields in enumerate(sent):
        build_version(olivia, pack, ids, f"1.{at}.0", subjects="anonymise", **fields)
    stated = [statement_of(olivia, pack, f"1.{at}.0")[0] for at in range(len(sent))]
    assert stated == ["names-replaced", "names-replaced", "de-identified"]


def test_pack_without_people_states_none(olivia: Contract) -> None:
    pack = pack_of(olivia)
    build_version(olivia, pack, [olivia.add("The heron eats fish.", namespace="/birds")["id"]], preview_read=True)
    assert statement_of(olivia, pack) == ("none", None)


def test_names_are_learnt_from_other_memories_about_the_person(olivia: Contract) -> None:
    olivia.add("Her full name is Hannah Weiss. Everybody calls her Mimi.", namespace="/birds", subject="patient-17")
    olivia.add("Seen.", namespace="/birds", subject="patient-17", metadata={"aliases": ["Hanni"]})
    memory = olivia.add("Weiss slept; Mimi and Hanni, patient-17, woke.", namespace="/birds", subject="patient-17")
    text = built_texts(olivia, [memory["id"]])
    assert "[person] slept; [person] and [person], woke." in text


def test_memory_without_subject_loses_the_names_of_the_others(olivia: Contract) -> None:
    about = olivia.add(
        "Annelise was born on 3 April 1961.", namespace="/birds", subject="Annelise Brückner", tags=["ward"]
    )
    nobody = olivia.add(
        "Annelise Brückner of Lindenweg 14 got flowers from Zelda for her 60th birthday on 3 April 2021.",
        namespace="/birds",
        title="Bruckner's day",
        tags=["annelise", "flowers"],
    )
    other = olivia.add("Hannah sat by Brückner, born 3.4.1961.", namespace="/birds", subject="Hannah Weiss")
    plain = olivia.add("The heron eats fish.", namespace="/birds", event_time="1961-04-02T22:00:00Z")
    ids = [nobody["id"], other["id"], plain["id"], about["id"]]
    with mock.patch("vault.store.services.PART", 1):
        text = built_texts(olivia, ids)
    assert [part for part in ("nnelise", "ckner", "Lindenweg") if part in text] == []
    # Ids and hashes of the file may hold the same digits inside.
    assert re.findall(r"(?<![0-9a-f-])(?:1961|2021)(?![0-9a-f])", text) == []
    assert "The heron eats fish." in text
    pack = olivia.get("packs/").json["results"][0]["id"]
    assert (statement_of(olivia, pack)[1] or {})["memories"] == 4
    shown = olivia.post(f"packs/{pack}/preview/", {"ids": ids, "subjects": "anonymise"}).json
    assert "Zelda" in shown["undecided"]
    assert {each["treatment"] for each in shown["results"]} == {"anonymised"}


def test_rewording_of_a_memory_without_subject_names_nobody(olivia: Contract) -> None:
    about = olivia.add("Slept.", namespace="/birds", subject="Hannah Weiss")
    nobody = olivia.add("A visitor came.", namespace="/birds")

    def reword(text: str, _: object) -> str:
        return text.replace("A visitor", "Ms Weiss")

    with mock.patch("vault.store.scan.rewordings_apply", reword):
        assert "[person] came." in built_texts(olivia, [about["id"], nobody["id"]])


def test_birth_date_is_one_placeholder_and_its_local_midnight_leaves_no_time(olivia: Contract) -> None:
    told = "Hannah was born on 3 April 1961."
    born = olivia.add(told, namespace="/birds", subject="Hannah Weiss", event_time="1961-04-02T11:00:00Z")
    memory = olivia.add("The day was 3 April 1961 and 3/4/1961.", namespace="/birds", subject="Hannah Weiss")
    ids: dict[str, Any] = {"ids": [born["id"], memory["id"]], "subjects": "anonymise"}
    shown = olivia.post(f"packs/{pack_of(olivia)}/preview/", ids).json["results"]
    assert [each["item"]["content"] for each in shown] == [
        "[person] was born on [birth_date].",
        "The day was [birth_date] and [birth_date].",
    ]
    assert "1961" not in built_texts(olivia, ids["ids"], name="midnight")


def test_text_with_placeholders_stays_as_it_is() -> None:
    born = frozenset({(1961, 4, 3)})
    person = deidentifier.Deidentifier(deidentifier.PersonFacts(("Hannah Weiss",), births=born), detector())
    once = person.clear("She lives at 12 Baker Street. It was 3 April 1961. His [address] 12345678 is old.")
    assert once == "She lives at [address] It was [birth_date]. His [address] 12345678 is old."
    assert person.clear(once) == once


def test_given_name_of_a_chinese_relative_is_replaced(olivia: Contract) -> None:
    memory = olivia.add("他的妻子李秀英每天陪他。秀英做饭。", namespace="/birds", subject="王小明")
    assert "[relative]每天陪他。[relative]做饭。" in built_texts(olivia, [memory["id"]])


def test_memory_that_placeholders_make_too_long_stays(olivia: Contract) -> None:
    memory = olivia.add("Al sat. " * 3_900, namespace="/birds", subject="Al")
    version = build_version(olivia, pack_of(olivia), [memory["id"]], subjects="anonymise")
    assert (version["state"], version["report"]["dropped"]) == ("blocked", {"length": 1})


def test_pack_that_names_the_person_in_its_own_texts_is_blocked(olivia: Contract) -> None:
    memory = olivia.add("Hannah slept.", namespace="/birds", subject="Hannah Weiss")
    pack = pack_of(olivia, description="The case of Ms Weiss.")
    version = build_version(olivia, pack, [memory["id"]], subjects="anonymise")
    assert (version["state"], version["report"]["blocked"]) == (
        "blocked",
        [{"memory_id": memory["id"], "kinds": ["pack_text"]}],
    )


def test_every_text_of_the_pack_is_read_for_names(olivia: Contract) -> None:
    texts: dict[str, Any] = {"title": "a", "description": "b", "readme": "c", "licence": "d"}
    pack = Pack(name="e", authors=["f"], keywords=["g", "h"], **texts)
    assert sorted(join_own_texts(pack, "i").split()) == list("abcdefghi")
    memory = olivia.add("Hannah slept.", namespace="/birds", subject="Hannah Weiss")
    version = build_version(
        olivia, pack_of(olivia, name="hannah-weiss", title="Herons"), [memory["id"]], subjects="anonymise"
    )
    assert version["state"] == "blocked"


def test_no_text_that_is_written_after_the_build_names_the_person(olivia: Contract) -> None:
    memory = olivia.add("Hannah slept.", namespace="/birds", subject="Hannah Weiss")
    pack = pack_of(olivia)
    version = build_version(olivia, pack, [memory["id"]], subjects="anonymise")
    ids = {"ids": [memory["id"]], "subjects": "anonymise", "version": "2.0.0"}
    offer = {"pack_version": version["id"], "visibility": "installation", "terms": {"price": "10 EUR to Ms Weiss"}}
    refused = [
        *(
            (olivia.patch(f"packs/{pack}/", {name: value}), name)
            for name, value in {
                "title": "Ms Weiss",
                "description": "Of Hannah.",
                "readme": "By H. Weiss",
                "licence": "Weiss",
                "authors": ["Weiss, Hannah"],
                "keywords": ["hannah"],
            }.items()
        ),
        (olivia.post(f"packs/{pack}/versions/", {**ids, "changelog": "Less of Weiss."}), "changelog"),
        (olivia.post(f"packs/{pack}/versions/1.0.0/deprecate/", {"reason": "Weiss asked."}), "reason"),
        (olivia.post(f"packs/{pack}/versions/1.0.0/yank/", {"reason": "Weiss asked."}), "reason"),
        (olivia.post("publications/", offer), "price"),
    ]
    assert [(reply.status, reply.json["errors"][0]["field"]) for reply, _ in refused] == [
        (400, name) for _, name in refused
    ]
    assert olivia.patch(f"packs/{pack}/", {"title": "Herons", "authors": ["Olivia"]}).status == 200
    olivia.delete(f"memories/{memory['id']}/")
    assert olivia.patch(f"packs/{pack}/", {"title": "Of Hannah Weiss"}).status == 400


def test_marked_sentence_keeps_its_second_wording_without_names(world: World, olivia: Contract) -> None:
    pack = pack_of(olivia)
    version = build_version(olivia, pack, add_people(olivia)[:1], subjects="anonymise")
    assert version["report"]["marked"] == 1
    with acting(world.olivia.actor):
        row = PackVersion.objects.get(id=version["id"])
        (wordings,) = wordings_open(row).values()
    assert "[person] prefers the calm ward." in wordings.content
    assert canaries_in(wordings.content) == []


def stated_by(**changes: Any) -> Manifest:
    """A file's manifest with these statements, signed by a stranger, as it is read."""
    key = Ed25519PrivateKey.generate()
    stated = {
        "name": "acme/herons",
        "version": "1.0.0",
        "title": "Herons",
        "created_at": datetime(2026, 11, 26, tzinfo=UTC),
        "minimum_product_version": "0.1.0",
        **changes,
    }
    public = key.public_key().public_bytes_raw()
    content = file_write(stated, [Item(uuid4(), "The heron eats fish.")], public_key=public, sign=key.sign)
    return file_read(content).manifest


DONE = DeIdentification("people/1", "patterns/2", 1, {"person": 1}, 0, confirmed=False)


def test_file_of_an_older_release_proves_a_replaced_reference_only() -> None:
    assert stated_by(data_subjects="de-identified").proved_statement == "reference-replaced"
    confirmed = stated_by(data_subjects="de-identified", de_identification=replace(DONE, confirmed=True))
    assert confirmed.proved_statement == "de-identified"
    assert stated_by(data_subjects="names-replaced", de_identification=DONE).proved_statement == "names-replaced"


@each_case(
    "stated",
    [
        {"data_subjects": "de-identified", "de_identification": DONE},
        {"data_subjects": "names-replaced"},
        {"data_subjects": "none", "de_identification": DONE},
    ],
)
def test_statement_stronger_than_what_was_done_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(PackInvalid):
        stated_by(**stated)
