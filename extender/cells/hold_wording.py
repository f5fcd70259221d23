"""Sentences about gangs that are not planned yet: what is the case, and what would change it."""

from policy.wording import count_of


def over_quota(*, gang: str, group: str, leaf_cells: int) -> tuple[str, str]:
    """It waits for quota."""
    needed = count_of(leaf_cells, "more leaf cell") if leaf_cells else "the gang"
    return (
        f"gang {gang} waits for quota of group {group}",
        f"starts once the group's quota has room for {needed}",
    )


def other_gate(*, pod: str) -> tuple[str, str]:
    """A gate of another controller holds a pod."""
    return (
        f"pod {pod} has a scheduling gate of another controller",
        "scheduled once that controller has removed its gate",
    )


def no_pod_group(*, gang: str) -> tuple[str, str]:
    """Its size is not known."""
    return (
        f"gang {gang} has no PodGroup that gives its size",
        "create the PodGroup, or correct its name in the pods",
    )


def unknown_class(*, gang: str, problem: str) -> tuple[str, str]:
    """Its class is not listed."""
    return (
        f"gang {gang} is not valid: {problem}",
        "add the class to the document, or create the pods again with another class",
    )
