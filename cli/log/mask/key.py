"""The names behind pseudonyms, as a file that only its owner may read."""

import os
from pathlib import Path
from typing import Final

import orjson

from cli.log.mask.names import Pseudonyms
from policy.errors import SettingsError

_OWNER_ONLY: Final = 0o600


def write_key(path: Path, names: Pseudonyms) -> None:
    """Write the names behind pseudonyms, by kind. Raises SettingsError if that is not possible."""
    text = orjson.dumps(names.originals(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    draft = path.parent / f".{path.name}.part"
    try:
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb") as file:
            file.write(text)
        draft.replace(path)
    except OSError as exc:
        raise SettingsError(f"cannot write {path}: {exc.strerror}") from exc
    finally:
        draft.unlink(missing_ok=True)
