"""Counts of one run of the compatibility kit, from its JUnit XML reports.

summary.py DIR [KNOWN] [--partial]: prints each failure and each skipped test, then
"N passed, N failed, N skipped, N known"; exits with 1 when a test failed that the file KNOWN does not name, when one
that it names did not fail (then it must be taken off; not asked of a partial run), or when none passed.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def outcomes(folder):
    """Yields (test, outcome, message) for each test of the reports in folder; a test is "Class#method"."""
    for report in sorted(pathlib.Path(folder).glob("TEST-*.xml")):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            bad = case.find("failure")
            if bad is None:
                bad = case.find("error")
            skipped = case.find("skipped")
            outcome = "failed" if bad is not None else "skipped" if skipped is not None else "passed"
            message = (bad.get("message") or bad.text or "") if bad is not None else ""
            kind = re.sub("^(RESTCompatibilityKit|Own)|CatalogTests$", "", case.get("classname", "").rsplit(".", 1)[-1])
            yield f"{kind or 'Catalog'}#{re.sub(r'[(].*', '', case.get('name', ''))}", outcome, message


def known_tests(path):
    """Gives {test: reason} of a file of known failures; a line without a reason is refused."""
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        test, _, reason = line.partition("  # ")
        if not line.strip() or line.startswith("#"):
            continue
        if not reason.strip():
            sys.exit(f"{path}: {line!r} gives no reason")
        found[test.strip()] = reason.strip()
    return found


def main(folder, *arguments):
    files = [each for each in arguments if each != "--partial"]
    known = known_tests(files[0]) if files else {}
    counts = {"passed": 0, "failed": 0, "skipped": 0, "known": 0}
    for test, outcome, message in outcomes(folder):
        first = " ".join(message.split())[:300]
        if outcome == "failed" and test in known:
            outcome = "known"
            print(f"known {test}: {known.pop(test)} ({first})")
        elif outcome == "failed":
            print(f"FAILED {test}: {first}")
        elif outcome == "skipped":
            print(f"skipped {test}")
        counts[outcome] += 1
    stale = [] if "--partial" in arguments else sorted(known)
    for test in stale:
        print(f"STALE {test} is listed as failing and did not fail")
    print(f"reports: {folder}")
    print("{passed} passed, {failed} failed, {skipped} skipped, {known} known".format(**counts))
    return 1 if counts["failed"] or stale or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
