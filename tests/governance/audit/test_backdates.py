"""An entry cannot be slipped in afterwards under an older time, nor vanish before its seal."""

from collections.abc import Callable
from dataclasses import replace

import psycopg

from governance.audit.seals import entries_seal
from governance.audit.verification import SEALED_WITHIN, log_verify
from tests.factories import World
from tests.governance.audit.logs import Bender, entries_make, first_fault, log_make, seal_all
from tests.governance.audit.manipulations import ENTRY, _copy_of

Superuser = Callable[[], psycopg.Connection]


def test_an_entry_that_claims_to_be_older_than_a_checkpoint_which_does_not_know_it_shows(
    world: World, superuser: Superuser
) -> None:
    log_make(world.alice.actor, 30)
    bender = Bender(superuser(), world.acme.id)
    places = bender.places()
    forged = _copy_of(bender, places[5][1])
    bender.run(f"UPDATE {ENTRY} SET at = at - interval '1 day' WHERE id = %s", forged)
    bender.run("INSERT INTO governance_auditunsealed (id, tenant_id) VALUES (%s, %s)", forged, bender.tenant_id)
    assert entries_seal(world.acme.id) == 1  # the sealer cannot know
    fault = first_fault(world.acme.id, bender.outside())
    assert fault is not None
    assert (fault.reason, fault.seq, fault.entry_id) == ("backdated", places[-1][0] + 1, str(forged))
    behind = log_verify(world.acme.id, checkpoints=bender.outside(), after=places[-2][0])
    assert behind.fault == fault, "also when what the checkpoint signed is not checked again"
    unsigned = [replace(checkpoint, signature="00") for checkpoint in bender.outside()]
    bender.run("DELETE FROM governance_auditcheckpoint")
    assert log_verify(world.acme.id, checkpoints=unsigned, after=places[-1][0]).intact, (
        "what nobody signed decides nothing"
    )
    assert not log_verify(world.acme.id, checkpoints=bender.outside(), after=places[-1][0]).intact


def test_an_entry_that_vanished_before_its_seal_shows(world: World, superuser: Superuser) -> None:
    seal_all(world.acme.id)
    entries_make(world.alice.actor, 1)
    bender = Bender(superuser(), world.acme.id)
    (gone,) = bender.run("SELECT id FROM governance_auditunsealed WHERE tenant_id = %s", world.acme.id)
    bender.run(f"DELETE FROM {ENTRY} WHERE id = %s", gone[0])
    fault = first_fault(world.acme.id, bender.outside())
    assert fault is not None
    assert (fault.reason, fault.entry_id) == ("entry_missing", str(gone[0]))


def test_an_entry_that_has_just_been_written_may_still_wait_for_its_seal(world: World, superuser: Superuser) -> None:
    seal_all(world.acme.id)
    entries_make(world.alice.actor, 2)
    bender = Bender(superuser(), world.acme.id)
    assert first_fault(world.acme.id, bender.outside()) is None
    bender.run(f"UPDATE {ENTRY} SET created_at = created_at - make_interval(secs => %s)", SEALED_WITHIN + 1)
    fault = first_fault(world.acme.id, bender.outside())
    assert fault is not None
