"""Celery beat keeps the installation's own periodic tasks in the database, and follows a change without a restart."""

from django_celery_beat.models import PeriodicTask, PeriodicTasks
from django_celery_beat.schedulers import DatabaseScheduler

from memos_web.celery import app
from tests.factories import World


def test_beat_stores_its_tasks_as_the_role_that_serves_and_follows_a_change(world: World) -> None:
    scheduler = DatabaseScheduler(app=app)
    assert set(app.conf.beat_schedule) <= set(scheduler.schedule)
    assert app.conf.beat_schedule["start schedules"]["schedule"] == 30.0
    PeriodicTask.objects.filter(name="tidy").update(enabled=False)
    PeriodicTasks.update_changed()
    assert "tidy" not in scheduler.schedule


def test_each_periodic_task_is_registered() -> None:
    app.loader.import_default_modules()
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)
