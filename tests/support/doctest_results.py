#!/usr/bin/env python3
"""Turns doctest's XML report into result lines: doctest_results.py NAME STATUS FOLDER | --failures FOLDER.

A test that can't run here prints a line `SKIPPED test name: reason`; doctest itself has no run-time skip. A program
that died without a whole report is one failure more, so that a crash can't pass.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def cases(folder):
    tree = xml.parse(folder / "report.xml").getroot()
    for case in tree.iter("TestCase"):
        overall = case.find("OverallResultsAsserts")
        if overall is not None:
            yield case, overall.get("test_case_success") == "true"


def skipped(folder):
    found = {}
    for name in ("stdout", "stderr"):
        for line in (folder / name).read_text(errors="replace").splitlines():
            if line.startswith("SKIPPED "):
                test, _, reason = line[len("SKIPPED "):].partition(": ")
                found[test] = reason
    return found


def main():
    if sys.argv[1] == "--failures":
        folder = pathlib.Path(sys.argv[2])
        try:
            for case, good in cases(folder):
                if not good:
                    print(f"   {case.get('filename')}:{case.get('line')}: {case.get('name')}")
                    for check in case.iter("Expression"):
                        if check.get("success") == "false":
                            expanded = (check.findtext("Expanded") or check.findtext("Exception") or "").strip()
                            print(f"      {check.get('filename')}:{check.get('line')}: {check.findtext('Original').strip()}  =>  {expanded}")
                    for told in case.iter("Message"):
                        print(f"      {told.findtext('Text', '').strip()}")
        except (OSError, xml.ParseError):
            print("   no whole report: it crashed or hung")
        return
    name, status, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    failed = 0
    skips = skipped(folder)
    try:
        for case, good in cases(folder):
            title = case.get("name").strip()
            if not good:
                failed += 1
                print(f"failed {name}: {title}")
            elif title in skips:
                print(f"skipped {name}: {title}: {skips.pop(title)}")
            else:
                print(f"passed {name}: {title}")
    except (OSError, xml.ParseError) as error:
        failed += 1
        print(f"failed {name}: no whole report ({error})")
    for title, reason in skips.items():
        print(f"skipped {name}: {title}: {reason}")
    if status != 0 and not failed:
        print(f"failed {name}: ended with status {status} although every test case passed")


main()
