"""Jobs as the job controller and queueing read them."""

from __future__ import annotations

from dray.api.labels import LabelSelector
from dray.api.meta import ApiStruct, Json
from dray.api.pods import PodSpec
from dray.api.views import ViewCondition, ViewMeta, view_as


class PodTemplate(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    spec: PodSpec = PodSpec()


class JobSpec(ApiStruct, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(ApiStruct, frozen=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    ready: int | None = None
    start_time: str | None = None
    completion_time: str | None = None
    conditions: tuple[ViewCondition, ...] = ()


class Job(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


def view_job(obj: Json) -> Job:
    """Raises InvalidView."""
    return view_as(obj, Job)


def is_finished(job: Job) -> bool:
    """Whether the job is complete or has failed."""
    return any(
        condition.type in ("Complete", "Failed") and condition.status == "True" for condition in job.status.conditions
    )
