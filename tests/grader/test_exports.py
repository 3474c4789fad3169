"""Every export: its golden file byte for byte, its schema, and that it never says more than the result."""

from __future__ import annotations

import base64
import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from breaks.lab.grading.exports import classroom50, gradescope, junit, lines, reporter, sheet
from breaks.lab.grading.result import ANSWERED_BY, STATES, Check, Result, from_json
from breaks.lab.grading.view import exit_status, plain_text
from breaks.lab.sheet import cell
from tests.grader.made import BROKEN, CLASS, FULL, HARMFUL, METADATA, NAMES, SOME, UNDECIDED, WHEN
from tests.grader.renew import GOLDEN, files

SCHEMAS = Path(__file__).parent / "schemas"
RULES = json.loads((SCHEMAS / "junit.json").read_text())
GIVEN = classroom50.metadata(METADATA)

texts = st.text(max_size=30) | st.sampled_from(["\x00", "\ud800", "]]>", "=1+1", "\u2028a", "\x1b]0;t\x07"])
checks = st.builds(
    Check,
    name=st.from_regex(r"[a-z_]{1,12}", fullmatch=True),
    title=texts,
    state=st.sampled_from(STATES),
    weight=st.integers(1, 5).map(float),
    message=texts,
    help=texts,
    seconds=st.floats(0, 9),
)
results = st.builds(
    Result,
    submission=texts.filter(bool),
    seed=st.integers(0, 2**53 - 1),
    checks=st.lists(checks, max_size=4, unique_by=lambda check: check.name).map(tuple),
    isolation=st.sampled_from(["namespaces", "process group", ""]),
    seconds=st.floats(0, 99),
    version=st.just("0.1.0"),
    reason=st.just("") | texts,
)


def valid(name: str, document: Any) -> Any:
    """Hold a document against its schema, and return it."""
    Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text())).validate(document)
    return document


def xml(text: str) -> ElementTree.Element:
    """Parse JUnit XML, hold it against its table of elements, and count again what it counts."""
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        rule = RULES[element.tag]
        assert sorted(element.attrib) == sorted(rule["attributes"])
        assert all(child.tag in rule["children"] for child in element)
        assert len(element) <= rule.get("most", len(element))
        assert rule["text"] or not (element.text or "").strip()
    for suite in [root, *root]:
        for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(suite.attrib[key]) == len(suite.findall(f".//{tag}"))
    return root


def test_golden_files() -> None:
    """Every export is the file that is kept, byte for byte; `python -m tests.grader.renew` writes them."""
    made = files()
    assert sorted(path.name for path in GOLDEN.iterdir()) == sorted(made)
    for name, text in made.items():
        assert (GOLDEN / name).read_bytes() == text.encode(), name


def test_schemas_are_schemas() -> None:
    """Each schema file is itself a valid JSON Schema."""
    for path in SCHEMAS.glob("*.schema.json"):
        Draft202012Validator.check_schema(json.loads(path.read_text()))


@given(results)
def test_any_result_keeps_to_every_schema(result: Result) -> None:
    """Whatever texts a submission brings, each export parses and keeps to its schema."""
    valid("result", json.loads(lines.line(result)))
    valid("gradescope", json.loads(gradescope.text(result)))
    valid("classroom50", json.loads(classroom50.text(result, GIVEN, WHEN)))
    valid("reporter", json.loads(base64.b64decode(reporter.text(result))))
    xml(junit.text([result]))
    plain_text([result, result]).encode()


@given(st.lists(results, max_size=3))
def test_no_cell_is_a_formula(some: list[Result]) -> None:
    """Each row has as many cells as the header, and no cell begins as a formula does."""
    rows = list(csv.reader(io.StringIO(sheet.text(some))))
    assert len(rows) == len(some) + 1
    assert {len(row) for row in rows} == {len(rows[0])}
    cells = [one for row in rows for one in row]
    assert not [one for one in cells if one.strip()[:1] in {"=", "+", "-", "@", "\t", "\r", "＝"}]


def test_cells() -> None:
    """A text that a spreadsheet would run is made a text, wherever a cell may begin; a number stays one."""
    for text in ("=1", "  =1", "\u00a0=1", "+1+1", "@a", "-1-1", "\t=1", "＝1", "-"):
        assert cell(text) == "'" + text
    split = {"a;=1": "a;'=1", "a;  =1": "a;'  =1", 'a;"@x': "a;'\"@x", "a|-1": "a|'-1", "a\t+1": "a\t'+1"}
    assert {text: cell(text) for text in split} == split  # where a comma is the decimal sign
    assert cell("'=1") == "''=1" != cell("=1")
    assert cell("x;y") == "x;y"
    assert [cell(value) for value in ("-1.5", "a=1", "", None, 3)] == ["-1.5", "a=1", "", "", 3]
    assert [cell(True), cell(False)] == ["yes", "no"]


@given(results)
def test_json_reads_back(result: Result) -> None:
    """A line of JSON is the whole result, and is one line."""
    line = lines.line(result)
    assert line.count("\n") == 1
    assert line.isascii()
    again = from_json(json.loads(line))
    assert again.to_json() == result.to_json()


@given(results)
def test_all_agree_on_the_score(result: Result) -> None:
    """Every form adds up to the score of the result, which is nothing where it is undecided."""
    want = result.score
    document = json.loads(gradescope.text(result))
    assert document["score"] == want
    scored = sum(test.get("score", 0) for test in document["tests"])
    assert scored == want
    assert sum(test["score"] for test in json.loads(classroom50.text(result, GIVEN, WHEN))["tests"]) == want
    assert sum(test["score"] for test in reporter.document(result)["tests"]) == want
    passed = [case for case in xml(junit.text([result])).iter("testcase") if not len(case)]
    weights = {check.name: check.weight for check in result.checks}
    assert sum(weights[case.attrib["name"]] for case in passed) == want
    assert not (result.reason and want)


@given(results)
def test_every_form_names_who_answered(result: Result) -> None:
    """Every form says that the stand-in answered; Classroom 50 has a place for it in a test alone."""
    told = [lines.line(result), plain_text([result]), gradescope.text(result), junit.text([result])]
    told += [sheet.text([result]), json.dumps(reporter.document(result))]
    assert all(ANSWERED_BY in text for text in told)
    fifty = json.loads(classroom50.text(result, GIVEN, WHEN))
    assert all(ANSWERED_BY in test.values() for test in fifty["tests"])


def test_gradescope_states() -> None:
    """Not checked and undecided failed there and say so; what is not offered has no score and no status."""
    tests = {test["name"]: test for test in json.loads(gradescope.text(SOME))["tests"]}
    assert tests["two_rounds"]["status"] == tests["stream_cut"]["status"] == "failed"
    assert "NOT CHECKED" in tests["two_rounds"]["output"]
    assert "UNDECIDED" in tests["stream_cut"]["output"]
    assert not {"score", "max_score", "status"} & set(tests["killed_and_resumed"])
    assert "NOT OFFERED" in tests["killed_and_resumed"]["output"]


def test_undecided_claims_nothing() -> None:
    """A result that is undecided passes no check in any form, and names its reason in each."""
    document = json.loads(gradescope.text(UNDECIDED))
    assert (document["score"], [t for t in document["tests"] if "status" in t or "score" in t]) == (0, [])
    fifty = json.loads(classroom50.text(UNDECIDED, GIVEN, WHEN))
    assert not any(test["passed"] for test in fifty["tests"])
    assert reporter.document(UNDECIDED)["status"] == "error"
    suite = xml(junit.text([UNDECIDED]))[0]
    assert suite.find("testcase[@name='grading']/error") is not None
    named = [gradescope.text(UNDECIDED), json.dumps(fifty), junit.text([UNDECIDED]), sheet.text([UNDECIDED])]
    assert all(UNDECIDED.reason in text for text in named)


def test_junit_states() -> None:
    """Failed is a failure, undecided an error, not checked and not offered are skipped with a reason."""
    suite = xml(junit.text([SOME]))[0]
    found = {case.attrib["name"]: [child.tag for child in case] for case in suite.iter("testcase")}
    assert found["one_tool"] == []
    assert found["parallel_tools"] == ["failure"]
    assert found["stream_cut"] == ["error"]
    assert found["two_rounds"] == found["killed_and_resumed"] == ["skipped"]
    skipped = suite.find("testcase[@name='killed_and_resumed']/skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == "not offered: CONVERSATION_DIR is not named"


def test_control_characters_are_visible() -> None:
    """What would steer a terminal or break XML is written out, and nothing of it is lost."""
    for text in (junit.text([HARMFUL]), plain_text([HARMFUL]), sheet.text([HARMFUL])):
        assert not set(text) & {"\x00", "\x1b", "\x07", "\u202e", "\ufffe", "\x9b"}
        assert "\\x1b[31m" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"CLASSROOM": "", "COMMIT_URL": ""}, "not set: CLASSROOM, COMMIT_URL"),
        ({"OWNER": "", "USERNAME": ""}, "not set: OWNER"),
        ({"ASSIGNMENT_TYPE": "solo"}, "ASSIGNMENT_TYPE is 'solo'"),
        ({"SUBMISSION_TAG": "v1"}, "SUBMISSION_TAG is 'v1'"),
    ],
)
def test_classroom50_metadata_is_asked_for(change: dict[str, str], said: str) -> None:
    """What the runner did not set is named in one line, all of it at once."""
    with pytest.raises(ValueError, match=said) as raised:
        classroom50.metadata({**METADATA, **change})
    assert "\n" not in str(raised.value)


def test_classroom50_older_runners() -> None:
    """Without REVIEW_URL the commit stands in for it, and without OWNER the user's name."""
    given = classroom50.metadata({k: v for k, v in METADATA.items() if k not in ("REVIEW_URL", "OWNER")})
    assert (given["review"], given["owner"]) == (METADATA["COMMIT_URL"], METADATA["USERNAME"])


def test_classroom50_takes_whole_points() -> None:
    """A half point is an error that says so; that schema has integers alone."""
    half = replace(FULL, checks=(replace(FULL.checks[0], weight=0.5),))
    with pytest.raises(ValueError, match="whole points"):
        classroom50.text(half, GIVEN, WHEN)


def test_exit_statuses() -> None:
    """0 all have full marks, 1 some have not, 2 something is undecided or nothing was graded."""
    failed = replace(SOME, checks=SOME.checks[:3])
    assert [exit_status(some) for some in ([FULL], [FULL, failed], [FULL, SOME], [UNDECIDED], [])] == [
        0,
        1,
        2,
        2,
        2,
    ]


def test_screen_names_all_that_failed() -> None:
    """A class on the screen: each submission without full marks in a block, each one in the table."""
    text = plain_text(CLASS)
    assert text.count("grace") == 1
    assert "hint: Answer every call" in text
    assert text.endswith("5 submissions: 1 with full marks, 1 without full marks, 3 undecided (exit 2)\n")
    assert all(result.submission in text for result in NAMES.values() if result is not HARMFUL)


def test_a_class_tells_what_is_undecided_and_why() -> None:
    """The last lines name each reason once, with those it holds for; of one submission, none."""
    many = [replace(BROKEN, submission=f"empty{n}") for n in range(7)]
    text = plain_text([FULL, SOME, UNDECIDED, *many]).split("\n\n")[-1]
    assert text.splitlines()[:3] == [
        "undecided: ada.py: stream_cut: OSError: no port is free",
        "undecided: =cmd|' /C calc'!A0: 4 of 6 checks reported",
        "undecided: empty0, empty1, empty2, empty3, empty4 and 2 more: no solve() is defined in solve.py",
    ]
    assert "\nundecided: empty" not in plain_text([BROKEN])
