"""PodDecider that were answered with a refusal, and the answers.

kube-scheduler asks about a refused pod again and again, hundreds of times a second. While the
cluster has not changed, the same question has the same answer, and is not even parsed.
"""

from typing import Final

from service.memory import BoundedMap

_MOST: Final = 100_000
"""As many pods as a cluster has; beyond, the oldest answer is dropped and made anew."""


class RepeatedRefusals:
    """Answers that hold until the cluster changes."""

    def __init__(self) -> None:
        self._version = 0
        self._answers: BoundedMap[int, bytes] = BoundedMap(_MOST)

    def repeat(self, question: bytes, *, version: int) -> bytes | None:
        """Return the answer, if the same was asked since the cluster last changed."""
        # Python seeds its hash anew in every process, so that a caller cannot aim at a collision.
        return self._answers.get(hash(question)) if version == self._version else None

    def put(self, question: bytes, answer: bytes, *, version: int) -> None:
        """Remember an answer for as long as the cluster does not change."""
        if version != self._version:
            self._version = version
            self._answers.clear()
        self._answers[hash(question)] = answer
