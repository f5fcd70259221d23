"""Errors with their Status object and HTTP code.

Codes, reasons and the beginnings of messages are those of a real API server, because clients read
all three.
"""

from typing import Any

from policy.errors import CellgateError


class ApiError(CellgateError):
    """The request is refused; nothing was changed."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.details = code, reason, details

    def to_status(self) -> dict[str, Any]:
        """Return the Status object for the client."""
        known = {"message": str(self), "reason": self.reason, "details": self.details}
        return _status("Failure", self.code) | {key: known[key] for key in known if known[key]}


def success(code: int, details: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the Status object of a successful request without an object."""
    return _status("Success", code) | ({"details": details} if details else {})


def _status(outcome: str, code: int) -> dict[str, Any]:
    common = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    return {**common, "status": outcome, "code": code}


def bad_request(message: str) -> ApiError:
    """The request is malformed."""
    return ApiError(400, "BadRequest", message)


def forbidden(plural: str, name: str, why: str) -> ApiError:
    """An admission plugin refuses the request."""
    subject = f'{plural} "{name}"' if name else plural
    details = _details(plural, name)
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def not_served() -> ApiError:
    """Nothing is served at this path."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def not_found(plural: str, name: str) -> ApiError:
    """The object does not exist."""
    return ApiError(404, "NotFound", f'{plural} "{name}" not found', _details(plural, name))


def already_exists(plural: str, name: str) -> ApiError:
    """The name is in use."""
    message = f'{plural} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(plural, name))


def conflict(plural: str, name: str, why: str = "the object has been modified") -> ApiError:
    """The object is not in the state that the caller expects."""
    message = f'Operation cannot be fulfilled on {plural} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(plural, name))


def unreadable(content_type: str) -> ApiError:
    """The format of the body is not supported."""
    message = f"the simulated API server cannot read {content_type!r} here"
    return ApiError(415, "UnsupportedMediaType", message)


def invalid(kind: str, name: str, why: str) -> ApiError:
    """The object is not valid; `why` starts with the path of the field."""
    message = f'{kind} "{name}" is invalid: {why}'
    return ApiError(422, "Invalid", message, _details(kind, name))


def internal_error(message: str) -> ApiError:
    """A webhook or its patch failed."""
    return ApiError(500, "InternalError", f"Internal error occurred: {message}")


def not_simulated(what: str) -> ApiError:
    """A real API server supports the request, the simulated one does not."""
    return ApiError(501, "NotImplemented", f"{what} is not supported by the simulated API server")


def _details(kind: str, name: str) -> dict[str, Any]:
    return {"name": name, "kind": kind}
