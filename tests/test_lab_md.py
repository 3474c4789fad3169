"""lab.md and README.md point at real lines, real breaks and real commands."""

import re
from pathlib import Path

import pytest

from breaks._break import CHAPTERS, load_all
from breaks.lab.cli import cli

ROOT = Path(__file__).parent.parent
LAB = (ROOT / "lab.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
POINTERS = re.findall(r"\[`([\w/]+\.py):(\d+)`\]\(([^)]+)\)[,\s]*\(?`([^`]+)`", LAB)
COMMANDS = re.findall(r"uv run (?:break|breaks) ([a-z-]+(?: [a-z-]+)?(?: --variant [a-z-]+)?)", LAB + README)


@pytest.mark.parametrize(("path", "line", "link", "code"), POINTERS)
def test_every_pointer_names_the_line_that_holds_its_code(path, line, link, code):
    """A question that points at a line of the loop quotes what stands there."""
    text = (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]

    assert code in text
    assert f"{path}#L{line}" == link


def test_no_pointer_is_missed():
    """Every mention of a line has the form that is checked above."""
    assert len(re.findall(r"\.py:\d+`", LAB)) == len(POINTERS) > 8


def test_every_chapter_has_its_sitting_by_title():
    """The sittings follow the chapters, in order and by their titles."""
    titles = re.findall(r"^## Sitting \d: (.+)$", LAB, re.M)

    assert list(CHAPTERS.values()) == titles


def test_every_break_and_variant_has_a_task():
    """Nothing that the lab offers is left out of lab.md."""
    for each in load_all():
        assert f"uv run break {each.label}" in LAB


def test_what_is_said_of_the_steps_is_true_of_every_task():
    """The tasks without all five steps are the ones that the beginning names."""
    said = " ".join(LAB[: LAB.index("1. **Read**")].split())
    without = set(re.findall(r"\d\.\d", said))
    tasks = re.findall(r"^### Task (\d\.\d) (.*?)(?=^##)", LAB, re.M | re.S)
    five = {"read", "predict", "run", "explain", "fix"}
    missing = {
        number: five - {word.lower() for word in re.findall(r"\*\*(\w+)\.?\*\*", text)}
        for number, text in tasks
    }

    assert {number for number, words in missing.items() if words} == without
    assert missing["2.2"] == {"fix"}
    for number, text in tasks:
        assert text.startswith("`") == (number not in without - {"2.2"})


def test_every_command_names_a_break_or_a_subcommand():
    """No command in the texts names a break that is not there."""
    known = {each.name for each in load_all()} | set(cli.commands)

    assert COMMANDS
    assert set() == {command.split()[0] for command in COMMANDS} - known


def test_the_table_of_breaks_is_current():
    """README's table is what the program would write today."""
    from breaks.lab.catalogue import updated

    assert README == updated(README)


def test_the_picture_is_current():
    """README's picture is what the program draws today, and it fetches nothing when it is shown."""
    from breaks.lab.picture import PICTURE, draw

    assert PICTURE.read_text(encoding="utf-8") == draw()
    assert "url(" not in draw().replace("url(#", "")
