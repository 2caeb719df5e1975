"""Measures what is replaced in texts about people: labelled sentences, and dialogues whose speakers' names are known.

The sentences are the templates of presidio-evaluator, filled by Faker, neither of which is part of the product. Each
template and locale is in one of two halves: rules may be developed on the first, and figures are of the second.
"""

import json
import random
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.client import BenchmarkError
from benchmarks.tables import markdown
from governance.privacy.pii.detector import PatternDetector
from governance.privacy.pii.identifiers import Identifier, merge_identifiers
from governance.vocabulary import PersonalKind
from vault.deidentification.deidentifier import Deidentifier, PersonFacts

SEED = 20_261_126
TEMPLATES = "presidio_evaluator/data_generator/raw_data/templates.txt"
# Other templates in the second half, and where there are more locales of a language, also others of these.
HALVES: Mapping[str, tuple[str, ...]] = {
    "develop": (
        *("en_US", "en_GB", "en_AU", "en_IN", "en_PH", "zh_CN", "zh_TW", "de_DE", "es_ES", "es_MX", "pl_PL", "sv_SE"),
        *("fr_CA", "fr_CH", "nl_BE", "pt_PT", "da_DK"),
    ),
    "report": (
        *("en_US", "en_GB", "en_AU", "en_IE", "en_NZ", "zh_CN", "zh_TW", "de_AT", "fr_FR", "it_IT", "nl_NL", "pt_BR"),
        *("fi_FI", "ko_KR", "no_NO"),
    ),
}
GROUPS = {"en": "English", "zh": "Chinese"}
RARE = ("{{ssn}}", "{{us_driver_license}}", "{{date_of_birth}}")  # in a few templates, which both halves have
UNSPACED = ("zh", "ko")
REGIONS = ("CN", "US", "GB")
BIRTH = re.compile("birth|born")
SLOT = re.compile(r"\{\{(\w+)\}\}")
NAME_SLOTS = {"person", "name", "name_male", "name_female", "name_nonbinary"}
ADDRESS_SLOTS = {"building_number", "street_name", "secondary_address", "city", "postcode", "zipcode", "state_abbr"}
DOCUMENTS = {"ssn": "national id", "us_driver_license": "driving licence", "passport": "passport"}
MEASURED = {"name", "address", "date of birth", *DOCUMENTS.values()}
NOT_PERSONAL = "none"
OTHERS = {"phone_number", "email", "iban", "credit_card_number", "ip_address", "url", "date_time"}
ID_NAMES = {
    **{
        "en_GB": "NI number",
        "en_CA": "SIN",
        "fr_FR": "NIR",
        "it_IT": "codice fiscale",
        "zh_TW": "身分證",
        "nl_NL": "BSN",
    },
    **{"pt_BR": "CPF", "fi_FI": "hetu", "ko_KR": "주민등록번호", "no_NO": "fødselsnummer", "de_DE": "Steuer-ID"},
    **{"es_ES": "NIF", "pl_PL": "PESEL", "zh_CN": "身份证", "sv_SE": "personnummer"},
}


@dataclass(frozen=True)
class Label:
    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class Labelled:
    """A text with labels, and the names that are known of the people in it."""

    text: str
    labels: tuple[Label, ...]
    names: tuple[str, ...]


def deidentification(templates: Path, data: Sequence[Path], half: str, rounds: int) -> dict[str, Any]:
    """Return recall and precision by kind. templates: a wheel of presidio-evaluator; data: files of dialogues.

    Raises BenchmarkError if Faker is missing.
    """
    figures: dict[str, Any] = {"seed": SEED, "half": half, "rounds": rounds, "locales": list(HALVES[half])}
    lines = read_templates(templates)
    groups: dict[str, list[Labelled]] = {}
    for locale in HALVES[half]:
        group = GROUPS.get(locale[:2], "other languages")
        groups.setdefault(group, []).extend(_sentences(lines, half, locale, rounds))
    figures |= {group: {"sentences": len(found), **_scores(found)} for group, found in groups.items()}
    for path in data:
        figures[path.name] = _scores(list(_dialogues(path, half)))
    return figures


def deidentification_table(figures: dict[str, Any]) -> str:
    rows = [
        [source, kind, *(score[name] for name in ("labels", "recall", "precision"))]
        for source, found in figures.items()
        if isinstance(found, dict)
        for kind, score in found.items()
        if isinstance(score, dict)
    ]
    return markdown(["texts", "kind", "labels", "recall", "precision"], rows)


def read_templates(wheel: Path) -> list[str]:
    """Return the templates in a wheel of presidio-evaluator, one a line."""
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(TEMPLATES).decode("utf-8", errors="replace")
    return [line.replace("\\n", "\n").replace("\\,", ",") for line in text.splitlines() if line.strip()]


def _sentences(templates: Sequence[str], half: str, locale: str, rounds: int) -> Iterator[Labelled]:
    """Yield the sentences of a locale. Templates of ids also stand with the words for a passport, or for its own id."""
    chance = random.Random(f"{SEED} {half} {locale}")
    fake = _fake(locale, chance)
    lines = [
        line
        for at, line in enumerate(templates)
        if SLOT.search(line) and ((at % 8 == 7) == (half == "report") or any(slot in line for slot in RARE))
    ]
    own = ID_NAMES.get(locale, "SSN")
    for line in lines * rounds:
        yield _fill(line.replace("social security number", own).replace("SSN", own), locale, fake, chance)
        if "{{ssn}}" in line:
            passport = line.replace("{{ssn}}", "{{passport}}").replace("social security number", "passport number")
            yield _fill(passport.replace("SSN", "passport"), locale, fake, chance)


def _fake(locale: str, chance: random.Random) -> Any:
    try:
        faker = import_module("faker")
    except ImportError as error:
        raise BenchmarkError("Faker is missing: pip install faker") from error
    fake = faker.Faker(locale)
    fake.seed_instance(chance.getrandbits(32))
    return fake


def _fill(template: str, locale: str, fake: Any, chance: random.Random) -> Labelled:
    """Return a template with values in its slots."""
    pieces, labels, people, size, at = list[str](), list[Label](), list[tuple[str, str]](), 0, 0
    for slot in SLOT.finditer(template):
        before = template[at : slot.start()]
        value, kind = _value(slot[1], locale, fake, chance, people)
        if kind == "date of birth" and not BIRTH.search(SLOT.sub("", template)):
            kind = "other personal"
        size += len(before)
        labels.append(Label(kind, size, size + len(value)))
        pieces += [before, value]
        size, at = size + len(value), slot.end()
    text = "".join([*pieces, template[at:]])
    names = tuple(_full_name(locale, first, last) for first, last in people)
    joined = _join_addresses(text, labels)
    if locale[:2] in UNSPACED:  # a number before a street in another script is no address
        joined = (Label("place", each.start, each.end) if each.kind == "parts" else each for each in joined)
    return Labelled(
        text, tuple(replace(each, kind="address") if each.kind == "parts" else each for each in joined), names
    )


def _value(slot: str, locale: str, fake: Any, chance: random.Random, people: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the value of a slot and its kind. A name slot makes a new person, of whom the full name is known."""
    is_first, is_last = slot.startswith("first_name"), slot.startswith("last_name")
    if slot in NAME_SLOTS or is_first or is_last:
        people.append((fake.first_name(), fake.last_name()))
        first, last = people[-1]
        name = first if is_first else last if is_last else _full_name(locale, first, last)
        return name, "name"
    if slot == "date_of_birth":
        born = fake.date_of_birth()
        return born.strftime(chance.choice(("%Y-%m-%d", "%d/%m/%Y", "%B %d, %Y", "%d %b %Y"))), "date of birth"
    if slot in DOCUMENTS:
        value = {"ssn": fake.ssn, "passport": fake.passport_number}.get(slot, lambda: _licence(chance))()
        return value, DOCUMENTS[slot]
    if slot == "address":
        return fake.address(), "address"
    if slot in ADDRESS_SLOTS:
        return _part_of_address(slot, fake), f"part {slot}"
    makers = {"organization": "company", "nationality": "country", "credit_card_number": "credit_card_number"}
    makers |= {"ip_address": "ipv4", "prefix_male": "prefix_male", "prefix_female": "prefix_female", "prefix": "prefix"}
    made = str(getattr(fake, makers.get(slot, slot), lambda: slot)())
    return made, "other personal" if slot in OTHERS else NOT_PERSONAL


def _part_of_address(slot: str, fake: Any) -> str:
    makers = {"zipcode": "postcode", "state_abbr": "state_abbr", "secondary_address": "secondary_address"}
    return str(getattr(fake, makers.get(slot, slot), fake.postcode)())


def _licence(chance: random.Random) -> str:
    """Return a number in a form of an American state's licences, as Faker's data for Ruby lists them."""
    form = chance.choice(
        ("#######", "?########", "?#######", "#########", "S###-###-##-###-#", "??######?", "?##-##-####")
    )
    digits = [
        str(chance.randint(0, 9)) if c == "#" else chance.choice("ABCDEHKLMNPRSW") if c == "?" else c for c in form
    ]
    return "".join(digits)


def _full_name(locale: str, first: str, last: str) -> str:
    return f"{last}{first}" if locale[:2] in UNSPACED else f"{first} {last}"


def _join_addresses(text: str, labels: Sequence[Label]) -> Iterator[Label]:
    """Yield the labels; a house number and a street, and what follows, are one address."""
    taken: list[Label] = []
    for label in [*labels, Label("end", len(text) + 99, len(text) + 99)]:
        is_part = label.kind.startswith("part ")
        if taken and (not is_part or not re.fullmatch(r"[\s,>?]*", text[taken[-1].end : label.start])):
            is_address = {"part building_number", "part street_name"} <= {part.kind for part in taken}
            yield Label("parts" if is_address else "place", taken[0].start, taken[-1].end)
            taken = []
        if is_part:
            taken.append(label)
        elif label.kind != "end":
            yield label


def _dialogues(path: Path, half: str) -> Iterator[Labelled]:
    """Yield the turns of a file in the layout of LoCoMo or of messages, of the people in this half."""
    for at, talk in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        if (at % 2 == 0) == (half == "develop"):
            yield from (_label_names(text, names) for names, text in _turns(talk))


def _turns(talk: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    if "messages" in talk:
        yield from (((talk["person"],), message["text"]) for message in talk["messages"])
        return
    said = talk["conversation"]
    names = (said["speaker_a"], said["speaker_b"])
    sessions = [turns for name, turns in said.items() if name.startswith("session") and isinstance(turns, list)]
    yield from ((names, turn["text"]) for turns in sessions for turn in turns)


def _label_names(text: str, names: tuple[str, ...]) -> Labelled:
    """Label words that begin as a name does, as `Mel` for Melanie, and in Chinese two characters of the name."""
    labels: list[Label] = []
    for name in names:
        if name.isascii():
            found = re.finditer(rf"\b{name[:2]}[a-z]*\b", text)
            labels += [Label("name", *word.span()) for word in found if _is_form(word[0], name)]
        else:
            pairs = "|".join(re.escape(name[at : at + 2]) for at in range(len(name) - 1))
            labels += [Label("name", *pair.span()) for pair in re.finditer(f"(?:{pairs})", text)]
    return Labelled(text, tuple(labels), names)


def _is_form(word: str, name: str) -> bool:
    """Return whether a capitalised word is the name, its beginning of three letters or more, or that with -y or -ie."""
    return word == name or (
        len(word) >= 3 and name.startswith(re.sub("(?:ie|y)$", "", word)) and len(word) <= len(name)
    )


def _scores(texts: Sequence[Labelled]) -> dict[str, Any]:
    """Return labels, recall and precision by kind. A label is found if each of its letters and digits is replaced."""
    labels, hits, right, wrong = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for each in texts:
        found = merge_identifiers(Deidentifier(PersonFacts(each.names), PatternDetector(REGIONS)).find(each.text))
        measured = [label for label in each.labels if label.kind in MEASURED]
        labels.update(label.kind for label in measured)
        hits.update(label.kind for label in measured if _is_replaced(each.text, label, found))
        for span in found:
            if span.kind is not PersonalKind.RELATIVE:  # no label tells of relations
                (right if _is_labelled(each, span) else wrong)[str(span.kind)] += 1
    rest = [kind for kind in labels if kind != "name"]
    scores: dict[str, Any] = {kind: _recall(labels, hits, [kind]) for kind in sorted(labels)}
    if rest:
        scores["all but names"] = _recall(labels, hits, rest)
    for kind in sorted({*right, *wrong}):
        total = right[kind] + wrong[kind]
        scores[f"replaced as {kind}"] = {"labels": total, "recall": "", "precision": round(right[kind] / total, 4)}
    return scores


def _recall(labels: Mapping[str, int], hits: Mapping[str, int], kinds: Sequence[str]) -> dict[str, Any]:
    total = sum(labels[kind] for kind in kinds)
    return {"labels": total, "recall": round(sum(hits[kind] for kind in kinds) / total, 4), "precision": ""}


def _is_labelled(text: Labelled, span: Identifier) -> bool:
    return any(label.start < span.end and span.start < label.end for label in text.labels if label.kind != NOT_PERSONAL)


def _is_replaced(text: str, label: Label, found: Sequence[Identifier]) -> bool:
    return all(
        not text[at].isalnum() or any(span.start <= at < span.end for span in found)
        for at in range(label.start, label.end)
    )
