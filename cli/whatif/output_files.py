"""Files that a command writes after long work: whether they can be written is checked before it."""

import os
from pathlib import Path

from policy.errors import SettingsError


def check_output(flag: str, path: str | Path | None) -> None:
    """Raise SettingsError if the file of a flag can certainly not be written."""
    if path is None:
        return
    file = Path(path)
    why = _obstacle(file)
    if why is not None:
        raise SettingsError(f"{flag}: cannot write {file}: {why}")


def _obstacle(file: Path) -> str | None:
    if file.is_dir():
        return "Is a directory"
    if not file.parent.is_dir():
        return f"there is no directory {file.parent}"
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        return "Permission denied"
    return None
