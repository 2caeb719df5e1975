from django.urls import path

from governance.api import jobs, schedules

urlpatterns = [
    path("jobs/", jobs.JobsView.as_view()),
    path("jobs/cancel/", jobs.JobsCancelView.as_view()),
    path("jobs/<uuid:job_id>/", jobs.JobDetailView.as_view()),
    path("jobs/<uuid:job_id>/retry/", jobs.JobRetryView.as_view()),
    path("jobs/<uuid:job_id>/cancel/", jobs.JobCancelView.as_view()),
    path("jobs/<uuid:job_id>/undo/", jobs.JobUndoView.as_view()),
    path("schedules/", schedules.SchedulesView.as_view()),
    path("schedules/defaults/", schedules.ScheduleDefaultsView.as_view()),
    path("schedules/<uuid:schedule_id>/", schedules.ScheduleView.as_view()),
    path("schedules/<uuid:schedule_id>/run/", schedules.ScheduleRunView.as_view()),
]
