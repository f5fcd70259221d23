"""How many examples a property test plays whose examples take long."""

import os

from hypothesis import settings


def at_most_in_ci(most: int) -> int:
    """Return the number of examples of the profile, in CI (`deep`) at most so many."""
    examples = settings().max_examples
    return min(most, examples) if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else examples
