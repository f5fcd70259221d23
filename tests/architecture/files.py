"""The files of the checkout: those git tracks, and new ones that it does not ignore."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked(pattern: str) -> list[Path]:
    """All files whose path matches a git pattern, as they are in the working tree."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).exists()]
