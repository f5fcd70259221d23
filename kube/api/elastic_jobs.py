"""Elastic Jobs in the API server: found by their label, and resumed with one of their sizes."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from kube.admission.elastic_jobs import (
    WAITING,
    ElasticJob,
    has_begun,
    read_elastic,
    started_patch,
)
from kube.api.client import MERGE_PATCH, KubeClient, KubeError
from kube.marks import ELASTIC_LABEL
from kube.read.suspension import FIELD_MANAGER
from kube.values.objects import items, mapping
from policy.errors import RequestError

logger = logging.getLogger(__name__)

_JOBS: Final = "/apis/batch/v1/jobs"
_PAGE: Final = "500"
_ABOUT_US: Final = (401, 408, 429)
"""Refusals that say nothing about the object."""


class ElasticJobs:
    """Reads and resumes Jobs; KubeError if that failed."""

    def __init__(self, client: KubeClient, *, check_leading: Callable[[], None]) -> None:
        """`check_leading` raises BackendError when another replica may lead."""
        self._client = client
        self._check_leading = check_leading

    async def list(self) -> list[ElasticJob]:
        """Return the Jobs that wait for one of their sizes, the oldest first.

        A Job that its owner has changed, so that it is elastic no longer, is left out. One that its
        owner has resumed is marked as started.
        """
        query = {"labelSelector": f"{ELASTIC_LABEL}={WAITING}", "limit": _PAGE}
        found: list[ElasticJob] = []
        while True:
            page = await self._client.request("GET", _JOBS, query=query)
            for job in items(page.get("items")):
                if has_begun(job):
                    await self._mark_started(job)
                elif one := _read(job):
                    found.append(one)
            token = mapping(page.get("metadata")).get("continue")
            if not token:
                return sorted(found, key=_age)
            query = query | {"continue": token}

    async def start(self, job: ElasticJob, size: int) -> bool:
        """Resume a Job with so many members; False if it has changed since it was read.

        Raises RequestError if the API server does not accept the Job with so many members.
        """
        return await self._patch(job.job, job.start_patch(size))

    async def _mark_started(self, job: Mapping[str, Any]) -> None:
        try:
            await self._patch(job, started_patch(job))
        except RequestError as exc:
            logger.info("Job not marked as started", extra={"error": str(exc)})

    async def _patch(self, job: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
        self._check_leading()
        metadata = job["metadata"]
        path = f"/apis/batch/v1/namespaces/{metadata['namespace']}/jobs/{metadata['name']}"
        try:
            await self._client.request(
                "PATCH",
                path,
                query={"fieldManager": FIELD_MANAGER},
                body=dict(patch),
                content_type=MERGE_PATCH,
            )
        except KubeError as exc:
            if exc.is_conflict or exc.is_missing:
                return False
            if 400 <= exc.status < 500 and exc.status not in _ABOUT_US:
                raise RequestError.at("", f"the API server refuses the change: {exc}") from exc
            raise
        return True


def _read(job: Mapping[str, Any]) -> ElasticJob | None:
    if job["metadata"].get("deletionTimestamp"):
        return None
    try:
        return read_elastic({"apiVersion": "batch/v1", "kind": "Job", **job})
    except RequestError as exc:
        logger.info("Job is not elastic", extra={"error": str(exc)})
        return None


def _age(job: ElasticJob) -> tuple[str, str]:
    metadata = job.job["metadata"]
    return str(metadata.get("creationTimestamp")), str(metadata.get("uid"))
