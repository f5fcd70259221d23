"""JSON logs: a constant message, and the values as fields.

    logger.info("pod bound", extra={"pod_uid": uid, "node": node})

becomes one line `{"time": …, "level": "info", "logger": …, "message": "pod bound", "pod_uid": …}`.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

import orjson

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record; never raises: a value that JSON cannot hold is written as its text."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(
            (key, value) for key, value in vars(record).items() if key not in _STANDARD_FIELDS
        )
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def configure_logs(*, level: str, stream: TextIO | None = None) -> None:
    """Send every log record of this process to one stream, as JSON."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # It logs a traceback for every request that is not HTTP, which any caller can send. Errors of
    # handlers are logged by `service.http`.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
