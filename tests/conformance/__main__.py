"""`python -m conformance DIR` with `tests` on the path of Python; `make conformance CASES=DIR` runs it."""

import argparse
import sys
from pathlib import Path

from conformance.report import lines_of, read_keys, run, write_keys

KEYS = Path(__file__).with_name("keys.txt")


def main(arguments: list[str] | None = None) -> int:
    """Compare the cases of a folder, print the report, and return the exit status."""
    parser = argparse.ArgumentParser(prog="conformance", description="Compare reference cases with the library.")
    parser.add_argument("folder", type=Path, help="folder of cases")
    parser.add_argument("--keys", type=Path, default=KEYS, help="list of the keys that earlier trees compared")
    parser.add_argument("--add-keys", action="store_true", help="add the keys compared now to that list")
    given = parser.parse_args(arguments)
    if not given.folder.is_dir():
        sys.stdout.write(f"{given.folder} is not a folder\n")
        return 1
    earlier = read_keys(given.keys) if given.keys.exists() else {}
    result = run(given.folder, earlier)
    sys.stdout.writelines(f"{line}\n" for line in lines_of(result))
    if given.add_keys:
        added = {kind: earlier.get(kind, set()) | set(outcome.compared) for kind, outcome in result.outcomes.items()}
        write_keys(given.keys, earlier | added)
    return 1 if result.failures() else 0


if __name__ == "__main__":
    sys.exit(main())
