"""The user that the server runs as: this process's own user, or for root an unprivileged one."""

import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policy.errors import SettingsError

_UNPRIVILEGED = ("nobody", "daemon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user and group by number, since the owner of a file need not have a name."""

    uid: int
    gid: int


def server_account(folders: Sequence[Path]) -> Account | None:
    """Choose the user for the server; None means the user of this process.

    For root, it is the first owner of the given folders that is not root, so that data of an
    ordinary user stays theirs, or else a user that exists on every machine.
    """
    if os.geteuid() != 0:
        return None
    for folder in folders:
        owner = _owner(folder)
        if owner is not None and owner.uid != 0:
            return owner
    return _unprivileged()


def _owner(folder: Path) -> Account | None:
    """Return the owner of a folder with their primary group; the folder's may be root's."""
    try:
        uid = folder.stat().st_uid
    except FileNotFoundError:
        return None
    try:
        return Account(uid=uid, gid=pwd.getpwuid(uid).pw_gid)
    except KeyError:
        return Account(uid=uid, gid=uid)


def _unprivileged() -> Account:
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    raise SettingsError(
        "PostgreSQL refuses to run as root, and this machine has no user 'nobody': run as an "
        "ordinary user, or add that user"
    )


def give(path: Path, account: Account) -> None:
    """Make `account` the owner of the folder `path` and its contents; links are not followed."""
    for _, _, files, folder in os.fwalk(path):
        os.fchown(folder, account.uid, account.gid)
        for name in files:
            os.chown(name, account.uid, account.gid, dir_fd=folder, follow_symlinks=False)
