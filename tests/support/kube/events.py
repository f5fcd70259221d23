"""An Event writer that keeps what would be written."""

from kube.api.events import Event, EventWriter


class KeptEvents(EventWriter):
    """Keeps what would be written."""

    def __init__(self) -> None:
        self.written: list[Event] = []

    def write(self, event: Event) -> None:
        self.written.append(event)
