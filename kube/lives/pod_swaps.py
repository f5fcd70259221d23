"""Swaps of places as annotations of pods."""

from collections.abc import Mapping
from typing import Any, Final

from kube import marks
from kube.values.objects import marks_of
from policy.errors import RequestError
from policy.queues.swaps import SwapRequest, read_swap

SWAP_PATH: Final = f"metadata.annotations[{marks.SWAP_ANNOTATION}]"


def read_pod_swap(annotations: Mapping[str, Any]) -> SwapRequest | None:
    """Read the swap that a pod states; None if the webhook has allowed none."""
    stated = annotations.get(marks.SWAPPED_BY_ANNOTATION)
    if marks.SWAP_ANNOTATION not in annotations or not isinstance(stated, str):
        return None
    return read_swap(stated)


def check_no_swap(obj: Mapping[str, Any]) -> None:
    """Raise RequestError if an object that does not exist yet asks for a swap."""
    if marks.SWAP_ANNOTATION in marks_of(obj, "annotations"):
        raise RequestError.at(SWAP_PATH, "write it on a pod that exists: a new gang has no place")
