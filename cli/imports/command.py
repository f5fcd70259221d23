"""`cellgate import KIND FILE`: chooses the conversion, prints its document and its remarks."""

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Final

from cli.check import read_text
from cli.imports.hived import convert_hived
from cli.imports.kinds import ImportKind, Occupied
from cli.imports.rules import convert_rules
from policy.errors import SpecError
from service.exit_codes import Exit
from service.process import Stop

Converted = tuple[str, list[str]]
"""The text of a document, and remarks about the conversion."""


_CONVERSIONS: Final[Mapping[ImportKind, Callable[[str, Namespace], Converted]]] = {
    ImportKind.RULES: lambda text, options: convert_rules(text, Occupied(options.occupied)),
    ImportKind.HIVED: lambda text, _: convert_hived(text),
}


async def import_file(options: Namespace, _: Stop) -> Exit:
    """Print the converted document, and on standard error the remarks, or all its problems.

    Raises SettingsError for a file that is something else.
    """
    convert = _CONVERSIONS[ImportKind(options.what)]
    try:
        document, remarks = convert(read_text(options.file), options)
    except SpecError as exc:
        for problem in exc.problems:
            print(f"cellgate: {problem}", file=sys.stderr)
        return Exit.FAILED
    print(document, end="")
    for remark in remarks:
        print(f"cellgate: {remark}", file=sys.stderr)
    return Exit.OK
