"""python -m tests.conformance KIND [PATH...]: compare with recorded answers; the last line is `N passed, M failed`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.kinds import KINDS, NotThereYet, load_kind
from tests.conformance.runner import DataMissing, default_data, run_cases


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: python -m tests.conformance KIND [PATH...]\nkinds: {' '.join(KINDS)}", file=sys.stderr)
        return 2
    kind, *paths = arguments
    if kind not in KINDS:
        print(f"unknown kind {kind!r}; kinds: {' '.join(KINDS)}", file=sys.stderr)
        return 2
    try:
        iter_cases = load_kind(kind)
        chosen = [Path(path) for path in paths] or [default_data() / part for part in KINDS[kind].data]
        tally = run_cases(iter_cases(chosen))
    except (NotThereYet, DataMissing) as error:
        print(error, file=sys.stderr)
        return 2
    print(tally)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
