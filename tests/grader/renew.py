"""The golden files of the exports. `python -m tests.grader.renew` writes them anew; then read the diff."""

from __future__ import annotations

from pathlib import Path

from breaks.lab.grading.exports import classroom50, gradescope, junit, lines, reporter, sheet
from breaks.lab.grading.view import plain_text
from tests.grader.made import CLASS, METADATA, NAMES, WHEN

GOLDEN = Path(__file__).parent / "golden"


def files() -> dict[str, str]:
    """Return the name and the text of every golden file, as the code of today makes them."""
    given = classroom50.metadata(METADATA)
    made = {"class.jsonl": lines.text(CLASS), "class.junit.xml": junit.text(CLASS)}
    made |= {"class.csv": sheet.text(CLASS), "class.txt": plain_text(CLASS)}
    for name, result in NAMES.items():
        made[f"{name}.gradescope.json"] = gradescope.text(result)
        made[f"{name}.classroom50.json"] = classroom50.text(result, given, WHEN)
        made[f"{name}.reporter.txt"] = reporter.text(result) + "\n"
        made[f"{name}.txt"] = plain_text([result])
    return made


def main() -> None:
    """Write them, and remove what is no longer one of them."""
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.iterdir():
        old.unlink()
    for name, text in files().items():
        (GOLDEN / name).write_bytes(text.encode())


if __name__ == "__main__":
    main()
