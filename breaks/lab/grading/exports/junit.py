"""JUnit XML: a suite for each submission, a case for each check.

passed: an empty case. failed: `failure`. undecided: `error`. not checked, not offered: `skipped`, with the
reason. A submission whose result is undecided gets one more case, `grading`, with an `error`; its passed
checks are `skipped`, since they do not count. XML 1.0 has no way to write most control characters
(https://www.w3.org/TR/xml/#charsets, 2008-11-26), so they are written out as escapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from breaks.lab.grading.exports.words import clean, line, told
from breaks.lab.grading.result import ANSWERED_BY, Check, Result
from breaks.lab.outline import safe

TAGS = {"failed": "failure", "undecided": "error", "not checked": "skipped", "not offered": "skipped"}


def text(results: Sequence[Result]) -> str:
    """Return results as one JUnit document."""
    root = ElementTree.Element("testsuites", name="break grade")
    for result in results:
        root.append(_suite(result))
    _count(root, sum(result.seconds for result in results))
    ElementTree.indent(root)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(result: Result) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=safe(result.submission))
    facts = {"state": result.state, "score": f"{result.score:g}", "max_score": f"{result.max_score:g}"}
    facts |= {"seed": str(result.seed), "isolation": result.isolation, "version": result.version}
    facts["answered_by"] = ANSWERED_BY
    listed = ElementTree.SubElement(suite, "properties")
    for name, value in facts.items():
        ElementTree.SubElement(listed, "property", name=name, value=line(value))
    if result.reason:
        case = _case(suite, result, "grading", 0)
        _told(case, "error", result.reason, "undecided", clean(result.reason))
    for check in result.checks:
        _check(suite, result, check)
    _count(suite, result.seconds)
    return suite


def _case(suite: ElementTree.Element, result: Result, name: str, seconds: float) -> ElementTree.Element:
    given = {"classname": safe(result.submission), "name": line(name), "time": f"{seconds:.3f}"}
    return ElementTree.SubElement(suite, "testcase", given)


def _check(suite: ElementTree.Element, result: Result, check: Check) -> None:
    case = _case(suite, result, check.name, check.seconds)
    if check.state in TAGS:
        tag, said = TAGS[check.state], f"{check.state}: {check.message or check.title}"
        _told(case, tag, said, check.state, told(result, check))
    elif result.reason:
        _told(case, "skipped", "passed, but not counted: the result is undecided", "", "")


def _told(case: ElementTree.Element, tag: str, message: str, kind: str, whole: str) -> None:
    element = ElementTree.SubElement(case, tag, message=line(message))
    if tag != "skipped":  # `skipped` has a message and nothing else in the schemas that are in use
        element.set("type", kind)
        element.text = whole


def _count(element: ElementTree.Element, seconds: float) -> None:
    """Write on a suite, or on the root, how many of each it holds."""
    element.set("tests", str(len(element.findall(".//testcase"))))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(len(element.findall(f".//{tag}"))))
    element.set("time", f"{seconds:.3f}")
