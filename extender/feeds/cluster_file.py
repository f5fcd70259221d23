"""The file of `--cluster`: a Cluster document that is followed instead of a ConfigMap."""

import asyncio
import logging
from pathlib import Path
from typing import Final, NoReturn

from extender.cluster.topology_source import parse_cluster
from kube.follow.policies import PolicySink
from policy.errors import SettingsError, SpecError

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0


class ClusterFile:
    """Watches the file of `--cluster`: a valid change is in force within a second or two."""

    def __init__(self, path: Path, policies: PolicySink) -> None:
        self._path = path
        self._policies = policies
        self._text: str | None = None

    async def load(self) -> None:
        """Read the file at the start; SettingsError with every problem if it cannot be used."""
        self._use(await asyncio.to_thread(load_cluster_file, self._path))

    async def run(self) -> NoReturn:
        """Read the file every second; while it is missing or half written, nothing changes."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                text = await asyncio.to_thread(self._path.read_text)
            except (OSError, UnicodeDecodeError) as exc:
                logger.warning("cluster file not readable", extra={"error": str(exc)})
                continue
            if text != self._text:
                self._use(text)

    def _use(self, text: str) -> None:
        self._text = text
        self._policies.use_cluster_file(text, path=str(self._path))


def load_cluster_file(path: Path) -> str:
    """Read a cluster document that must be good; SettingsError with every problem if it is not."""
    try:
        text = path.read_text()
        parse_cluster(text)
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"cannot read {path}: {exc}; check --cluster") from exc
    except SpecError as exc:
        raise SettingsError(f"--cluster {path} cannot be used: {exc}") from exc
    return text
