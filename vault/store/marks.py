"""Second wordings of sentences of memories, for watermarked packs."""

from uuid import UUID

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import Conflict
from governance.vocabulary import Permission
from vault.content.drafts import CubeChanges
from vault.cubes.selectors import CubeView, cube_get
from vault.cubes.services import cube_update
from vault.lifecycle.summary_text import sentence_ranges
from vault.models import Cube
from vault.store.wordings import METADATA, wordings_check
from vault.vocabulary import Source


def sentence_mark(*, actor: Actor, cube_id: UUID, sentence: str, second: str) -> Cube:
    """Store a second wording of a sentence of a memory, as a new version of the memory.

    Raises NotFound; Forbidden; Invalid; Conflict for a memory of a pack. Writes as `cube_update`.
    """
    authorize(actor, Permission.STORE_MANAGE, Target("memory", cube_id, actor.tenant_id))
    view = cube_get(actor=actor, cube_id=cube_id)
    if view.cube.source == Source.PACK:
        raise Conflict("Memories of a pack cannot go into another pack.")
    wordings_check(view.words.content, sentence, second)
    return _write_metadata(actor, view, {METADATA: {"sentence": sentence, "second": second}})


def sentence_unmark(*, actor: Actor, cube_id: UUID) -> Cube:
    """Remove the second wording of a memory's sentence. Raises NotFound; Forbidden. Writes as `cube_update`."""
    authorize(actor, Permission.STORE_MANAGE, Target("memory", cube_id, actor.tenant_id))
    return _write_metadata(actor, cube_get(actor=actor, cube_id=cube_id), {})


def split_sentences(text: str) -> list[str]:
    """Return the sentences that occur exactly once in a text, in order."""
    found = [text[begin:end].strip() for begin, end in sentence_ranges(text)]
    return [sentence for sentence in found if sentence and text.count(sentence) == 1]


def _write_metadata(actor: Actor, view: CubeView, stated: dict[str, dict[str, str]]) -> Cube:
    kept = {name: value for name, value in view.words.metadata.items() if name != METADATA}
    changes = CubeChanges(metadata={**kept, **stated})
    return cube_update(actor=actor, cube_id=view.cube.id, expected_versions={view.cube.version}, changes=changes)
