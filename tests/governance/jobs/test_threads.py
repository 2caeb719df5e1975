"""A worker has a thread for each job that is sent to it."""

import subprocess
import sys

import pytest
from django.conf import settings

from governance.vocabulary import Weight
from tests.harness.servers import ROOT, clean_environ

MAKE_WORKER = """
import sys, warnings
from celery.apps.worker import Worker
from memos_web.celery import app
warnings.simplefilter("ignore")  # tests may run as root
concurrency, *queues = sys.argv[1:]
print(Worker(app=app, pool="threads", concurrency=int(concurrency), queues=queues).pool.limit)
"""


@pytest.mark.parametrize(
    ("asked", "queues"),
    [(8, [*Weight]), (1, [Weight.HEAVY]), (40, [Weight.INTERACTIVE, Weight.BACKGROUND])],
)
def test_threads_of_a_worker_are_more_than_the_slots_of_its_queues(asked: int, queues: list[Weight]) -> None:
    words = [str(asked), *(queue.value for queue in queues)]
    done = subprocess.run(
        [sys.executable, "-c", MAKE_WORKER, *words],
        cwd=ROOT,
        env=clean_environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    slots = sum(settings.JOB_SLOTS[queue][0] for queue in queues)
    assert int(done.stdout.splitlines()[-1]) == max(asked, slots + 1)
