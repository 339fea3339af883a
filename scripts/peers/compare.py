"""Compares a test run with what is expected of it: compare.py LOG EXPECTED.

EXPECTED says how many tests there are (`tests NUMBER`) and, one a line, each that fails here and why. Another failure is an
error, and so are a listed test that passes, and a test that is gone.
"""

import re
import sys


def read_expected(path):
    total, expected = None, {}
    with open(path) as lines:
        for line in lines:
            name, _, rest = line.strip().partition(" ")
            if not name or name.startswith("#"):
                continue
            if not rest.strip():
                sys.exit(f"peers: {path} gives no reason for {name}")
            if name == "tests":
                total = int(rest)
            else:
                expected[name] = rest.strip()
    return total, expected


def main(log, expected_path):
    with open(log) as text:
        lines = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", text.read(), re.M)
    results = dict(lines)
    total, expected = read_expected(expected_path)
    failed = {name for name, result in results.items() if result == "FAILED"}
    count = {kind: sum(result == kind for result in results.values()) for kind in ("ok", "FAILED", "ignored")}

    problems = [f"failed: {name}" for name in sorted(failed - expected.keys())]
    problems += [f"is listed as failing and did not: {name}" for name in sorted(expected.keys() - failed)]
    if len(results) != total:
        problems.append(f"{len(results)} tests reported, {total} are expected: see {log}")
    print(
        f"peers: {len(results)} tests: {count['ok']} passed, {count['ignored']} ignored by their authors, "
        f"{count['FAILED']} failed; {len(expected)} are expected to fail"
    )
    for problem in problems:
        print(f"peers: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
