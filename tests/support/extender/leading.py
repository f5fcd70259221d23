"""A replica that leads."""


class AlwaysLeading:
    """Leads whenever it is asked."""

    def check(self) -> None:
        """Raise nothing: this replica leads."""
