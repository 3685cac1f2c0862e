#!/usr/bin/env python3
"""Turns a JUnit file of pytest into result lines: junit_results.py KIND STATUS FILE."""
import sys
import xml.etree.ElementTree as xml

kind, status, report = sys.argv[1], int(sys.argv[2]), sys.argv[3]
failed = 0
try:
    for case in xml.parse(report).getroot().iter("testcase"):
        name = f"{kind}: {case.get('classname', '').rsplit('.', 1)[-1]}.{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
            print(f"failed {name}")
        elif case.find("skipped") is not None:
            print(f"skipped {name}: {case.find('skipped').get('message')}")
        else:
            print(f"passed {name}")
except (OSError, xml.ParseError) as error:
    failed += 1
    print(f"failed {kind}: no whole report ({error})")
if status not in (0, 5) and not failed:
    print(f"failed {kind}: pytest ended with status {status}")
