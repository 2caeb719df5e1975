"""Contents of a file for the choice of a mapping: columns, namespaces and speakers, and the first memories. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vault.exchange.items import Item

MOST_NAMED = 50  # namespaces and speakers
SAMPLES = 5
Names = Mapping[str, str]
NO_NAMES: Names = {}


@dataclass(frozen=True)
class Sample:
    """A memory as the import would store it. when: its event time in ISO 8601, empty without one."""

    content: str = field(repr=False)
    title: str = field(default="", repr=False)
    namespace: str = ""
    speaker: str = field(default="", repr=False)
    tags: tuple[str, ...] = ()
    when: str = ""


@dataclass(frozen=True)
class FileView:
    """The content of a file. columns: of a CSV table, in its order; chosen: our name to its own.

    namespaces, speakers, personas: how many memories have each, the most frequent MOST_NAMED first.
    """

    columns: tuple[str, ...] = ()
    chosen: Names = field(default_factory=dict)
    namespaces: Mapping[str, int] = field(default_factory=dict)
    speakers: Mapping[str, int] = field(default_factory=dict)
    personas: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()


def rename_item(item: Item, namespaces: Names, speakers: Names, personas: Names) -> Item:
    """The item under other names; an empty name makes a memory private, or without a speaker or persona."""
    if not namespaces and not speakers and not personas:
        return item
    return replace(
        item,
        namespace=namespaces.get(item.namespace, item.namespace),
        speaker=speakers.get(item.speaker, item.speaker),
        persona=personas.get(item.persona, item.persona),
    )


def top_names(counts: Counter[str]) -> dict[str, int]:
    """The most frequent names, without the empty one."""
    return dict(Counter({name: count for name, count in counts.items() if name}).most_common(MOST_NAMED))


def make_sample(item: Item, namespace: str | None) -> Sample:
    present = item.versions[-1]
    return Sample(
        content=present.content,
        title=present.title,
        namespace=namespace or item.namespace,
        speaker=item.speaker,
        tags=present.tags,
        when=present.event_time.isoformat() if present.event_time else "",
    )
