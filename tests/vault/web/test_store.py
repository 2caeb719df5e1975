"""The catalogue and the page of a pack: what each reader finds, and a README that can do nothing."""

import pytest

from tests.factories import World
from tests.governance.web.visitors import signed_in, statements
from tests.vault.api.contract import contract
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, pack_of, publish_version

NASTY = "<script>alert(1)</script>"
README = (
    f"# Contents\n\nAll about **herons**. [here](https://evil.example) ![pixel](https://evil.example/a.png)\n{NASTY}"
)


@pytest.fixture
def herons(world: World) -> str:
    """The publication of a pack, for the whole installation."""
    olivia = contract(world, "olivia")
    pack = pack_of(
        olivia,
        title=f"Herons {NASTY}",
        description="Birds by the mill.",
        readme=README,
        topic="learning",
        licence="CC-BY-4.0",
        keywords=["birds"],
        authors=["Olivia"],
    )
    version = build_version(olivia, pack, memories_of(olivia, *TEXTS), changelog="First edition.")
    terms = {"reads": 100, "period": "day", "price": "4 pounds", "days": 30, "purposes": ["study"]}
    return str(publish_version(olivia, version, terms=terms)["id"])


@pytest.mark.usefixtures("herons")
@pytest.mark.parametrize("who", ["olivia", "bob", "charlie"])
def test_reader_finds_pack_by_words_topic_and_language(world: World, who: str) -> None:
    browser = signed_in(world.person(who))
    for asked in ("", "?q=mill+birds", "?topic=learning", "?language=en", "?order=newest", "?topic=nonsense&order=x"):
        page = browser.get(f"/store/{asked}").content.decode()
        assert "/store/acme/herons/" in page, asked
        assert "1 pack<" in page
        assert NASTY not in page
    for asked in ("?q=kiln", "?topic=health", "?language=zh", "?page=2"):
        assert "/store/acme/herons/" not in browser.get(f"/store/{asked}").content.decode()
    assert "No pack matches" in browser.get("/store/?q=kiln").content.decode()


@pytest.mark.usefixtures("herons")
def test_facets_count_and_a_chosen_one_has_a_way_back(world: World) -> None:
    page = signed_in(world.charlie).get("/store/?q=mill&topic=learning").content.decode()
    assert 'value="learning" checked' in page
    assert 'href="?q=mill" aria-label="Clear Learning"' in page
    assert "English" in page


@pytest.mark.usefixtures("herons")
def test_pack_page_shows_readme_samples_versions_terms_and_trust(world: World) -> None:
    page = signed_in(world.charlie).get("/store/acme/herons/").content.decode()
    for words in (*TEXTS, "<strong>herons</strong>", "First edition.", "100 a day", "4 pounds", "study", "CC-BY-4.0"):
        assert words in page
    for words in ("Signature verified", "Scan passed", "3 unchanged", "30 days after it begins", "none yanked", "Acme"):
        assert words in page
    assert "<h2>Contents</h2>" in page
    assert page.count("<h1") == 1


@pytest.mark.usefixtures("herons")
def test_readme_brings_neither_script_nor_link_nor_picture(world: World) -> None:
    page = signed_in(world.charlie).get("/store/acme/herons/").content.decode()
    assert NASTY not in page
    assert 'href="https://evil.example' not in page
    assert "<img" not in page


def test_deprecation_and_yank_stand_on_the_page_with_their_reasons(world: World, herons: str) -> None:
    olivia = contract(world, "olivia")
    pack = olivia.get("publications/own/").json["results"][0]["pack"]
    newer = build_version(olivia, pack, memories_of(olivia, "The heron eats frogs."), version="1.1.0")
    publish_version(olivia, newer)
    assert olivia.post(f"packs/{pack}/versions/1.1.0/yank/", {"reason": "Frogs are wrong."}).status == 200
    assert olivia.post(f"packs/{pack}/versions/1.0.0/deprecate/", {"reason": "An edition comes."}).status == 200
    page = signed_in(world.charlie).get("/store/acme/herons/").content.decode()
    assert "The publisher advises against version 1.0.0." in page
    for words in ("An edition comes.", "Frogs are wrong.", "Yanked", "1 yanked"):
        assert words in page


def test_publication_of_one_organisation_is_not_there_for_another(world: World) -> None:
    olivia = contract(world, "olivia")
    publish_version(olivia, build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0])), visibility="tenant")
    assert signed_in(world.bob).get("/store/acme/herons/").status_code == 200
    charlie = signed_in(world.charlie)
    assert charlie.get("/store/acme/herons/").status_code == 404
    assert "No pack yet" in charlie.get("/store/").content.decode()


def test_search_that_is_too_long_is_a_422(world: World) -> None:
    assert signed_in(world.bob).get(f"/store/?q={'a' * 201}").status_code == 422


def test_member_without_reading_is_refused(world: World) -> None:
    ada = signed_in(world.person("ada"))
    assert ada.get("/store/").status_code == 403
    assert ada.get("/store/acme/herons/").status_code == 403


@pytest.mark.usefixtures("herons")
def test_catalogue_takes_few_statements(world: World) -> None:
    assert len(statements(signed_in(world.bob), "/store/")) <= 12


def test_empty_store_says_so_and_offers_no_filters(world: World) -> None:
    page = signed_in(world.charlie).get("/store/").content.decode()
    assert "No pack yet" in page
    assert "<legend>" not in page
    assert "chip-filters" not in page
