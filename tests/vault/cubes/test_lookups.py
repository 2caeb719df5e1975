"""`any_of` finds what `in` finds."""

from uuid import uuid4

from governance.database import acting
from tests.factories import World
from tests.vault.api.contract import Contract
from vault.models import Cube, CubeVersion, Posting


def test_any_of_finds_ids_numbers_and_bytes_as_in_does(world: World, alice: Contract) -> None:
    ids = [alice.add(text)["id"] for text in ("The heron nests by the mill.", "The otter swims at night.")]
    with acting(world.alice.actor):
        first = Cube.objects.get(id=ids[0])
        terms = list(Posting.objects.filter(cube_id=ids[1]).values_list("term", flat=True))
        assert {str(cube.id) for cube in Cube.objects.filter(id__any_of=[*ids, uuid4()])} == set(ids)
        hashes = [first.content_hash, b'\\"']
        assert [cube.id for cube in Cube.objects.filter(content_hash__any_of=hashes)] == [first.id]
        found = {cube_id for (cube_id,) in Posting.objects.filter(term__any_of=terms).values_list("cube_id")}
        assert found == {cube_id for (cube_id,) in Posting.objects.filter(term__in=terms).values_list("cube_id")}
        assert [version.cube_id for version in CubeVersion.objects.filter(cube_id__any_of=[first.id])] == [first.id]
        assert not Cube.objects.filter(id__any_of=[])
