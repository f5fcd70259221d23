"""How large things may be before they are a mistake, and why.

Each limit bounds what one pod can make us compute or store; none of them is a quota.
"""

from typing import Final

MAX_LEAF_COUNT: Final = 4_096
"""Leaf cells of one pod: it runs on one node, and no node has as many devices."""

MAX_LEAF_INDEX: Final = 2**31 - 1
"""Device numbers are HiveD's int32."""

MAX_GANG_SIZE: Final = 150_000
"""Members of one gang: as many pods as Kubernetes supports in one cluster."""

MAX_TEXT_LENGTH: Final = 1_024
"""Free text that serves as a name: users, HiveD's gangs and cells."""

MAX_SPEC_BYTES: Final = 64 * 1_024
"""HiveD's annotation; real ones have a few hundred bytes."""

MAX_BIND_INFO_BYTES: Final = 256 * 1_024
"""HiveD's record of a whole gang's placement: Kubernetes accepts no larger annotations."""

MAX_ITEMS: Final = 1_000
"""Entries of one list in a pod, such as containers; Kubernetes would accept a megabyte of them."""

MAX_PROBLEMS: Final = 100
"""Problems reported for one input."""
