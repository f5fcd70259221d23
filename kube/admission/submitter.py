"""Identify the submitter of a pod: the user who is charged. Pure.

A stamp (the annotations that name the submitter) is believed only from a trusted controller. A
request from any other user with a stamp that names a different user is refused. Without a stamp,
the sender of the request is the submitter.
"""

from typing import Protocol

from kube import marks
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.identity.identity import Identity
from policy.submission import GroupName, UserName
from policy.wording import quote

STAMP_PATH = f"metadata.annotations[{marks.SUBMITTER_ANNOTATION}]"


class Sender(Protocol):
    """The user that sends a request to the API server."""

    @property
    def username(self) -> str:
        """The name of the user."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the user, as the API server knows them."""


def identify(
    pod: ManagedPod, sender: Sender, identity: Identity
) -> tuple[UserName, tuple[GroupName, ...]]:
    """Return the submitter of a pod, with all groups that count.

    Raises RequestError for a stamp that is not believed.
    """
    if pod.submitter is not None and identity.is_trusted(sender.username):
        return pod.submitter, identity.groups_of(pod.submitter, pod.submitter_groups)
    check_stamp(pod.submitter, sender, path=STAMP_PATH)
    return UserName(sender.username), identity.groups_of(sender.username, sender.groups)


def check_stamp(stamped: str | None, sender: Sender, *, path: str) -> None:
    """Raise RequestError if a sender that is not trusted names another user as submitter."""
    if stamped is not None and stamped != sender.username:
        message = f"names {quote(stamped)}, but the request comes from {quote(sender.username)}"
        raise RequestError.at(path, f"{message}; {_hint(sender)}")


def _hint(sender: Sender) -> str:
    """Say what to do; only an admin can let a controller submit for other users."""
    if sender.username.startswith("system:serviceaccount:"):
        return "an admin can list it under trustedControllers of the Identity document"
    return "leave the annotation out, Cellgate sets it"
