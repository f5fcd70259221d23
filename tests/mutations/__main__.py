"""List what is broken and what notices it; exit code 1 if something is not noticed."""

import sys

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import Test, is_noticed


def _name(test: Test) -> str:
    inner = getattr(test, "func", test)
    given = ", ".join(str(getattr(arg, "__name__", arg)) for arg in getattr(test, "args", ())[:1])
    return f"{inner.__name__}({given})" if given else inner.__name__


def main() -> int:
    """Try all mutations, one after the other."""
    unnoticed = 0
    for mutation in MUTATIONS:
        with mutation.apply():
            results = [(_name(test), is_noticed(test)) for test in mutation.noticed_by]
        for name, fails in results:
            unnoticed += not fails
            print(f"{'noticed ' if fails else 'SURVIVED'}  {mutation.rule}  <- {name}")
    print(f"{len(MUTATIONS)} mutations, {unnoticed} not noticed")
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main())
