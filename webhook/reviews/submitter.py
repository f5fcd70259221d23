"""Identify the submitter of a pod: the user who is charged. Pure.

A stamp (the annotations that name the submitter) is believed only from a trusted controller. A
request from any other user with a stamp that names a different user is refused. Without a stamp,
the sender of the request is the submitter.
"""

from dataclasses import dataclass

from kube import marks
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.identity.identity import Identity
from policy.submission import GroupName, UserName
from policy.wording import quote
from webhook.wire import UserInfo

STAMP_PATH = f"metadata.annotations[{marks.SUBMITTER_ANNOTATION}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """A user, with all groups that count."""

    user: UserName
    groups: tuple[GroupName, ...]


def identify(pod: ManagedPod, sender: UserInfo, identity: Identity) -> Submitter:
    """Return the submitter of a pod. Raises RequestError for a stamp that is not believed."""
    if pod.submitter is not None and identity.is_trusted(sender.username):
        groups = identity.groups_of(pod.submitter, pod.submitter_groups)
        return Submitter(user=pod.submitter, groups=groups)
    check_stamp(pod.submitter, sender, path=STAMP_PATH)
    groups = identity.groups_of(sender.username, sender.groups)
    return Submitter(user=UserName(sender.username), groups=groups)


def check_stamp(stamped: str | None, sender: UserInfo, *, path: str) -> None:
    """Raise RequestError if a sender that is not trusted names another user as submitter."""
    if stamped is not None and stamped != sender.username:
        message = f"names {quote(stamped)}, but the request comes from {quote(sender.username)}"
        raise RequestError.at(path, f"{message}; {_hint(sender)}")


def _hint(sender: UserInfo) -> str:
    """Say what to do; only an admin can let a controller submit for other users."""
    if sender.username.startswith("system:serviceaccount:"):
        return "an admin can list it under trustedControllers of the Identity document"
    return "leave the annotation out, Cellgate sets it"
