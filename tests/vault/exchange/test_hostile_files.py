"""Row 17 for importers: a hostile file is a small 4xx within two seconds, and leaves no row."""

import time

from governance.database import acting
from governance.models import Job
from governance.vocabulary import Topic
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.exchange.hostile import hostile_files
from vault.models import Cube

LONGEST, LARGEST_REPLY = 2.0, 4_096


def test_hostile_files_are_small_refusals_that_leave_no_row(world: World, alice: Contract) -> None:
    files = list(hostile_files())
    assert len(files) >= 120
    faults = []
    for name, form, content in files:
        started = time.process_time()
        reply = alice.raw(f"imports/?format={form}", content, content_type="application/octet-stream")
        took = time.process_time() - started
        if not 400 <= reply.status < 500 or len(reply.body) > LARGEST_REPLY or took > LONGEST:
            faults.append((name, form, reply.status, len(reply.body), round(took, 2)))
    assert faults == []
    with acting(world.alice.actor):
        assert not Cube.objects.exists()
        assert not Job.objects.filter(kind=Topic.MEMORIES_IMPORT).exists()
