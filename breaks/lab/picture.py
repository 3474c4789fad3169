"""Draw the README's picture from a run of the program itself: `python -m breaks.lab.picture`.

The run is replayed, and the screen is the one that a terminal shows. Does not draw anything
that the screen does not say.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from breaks._break import find
from breaks.lab import page, rich_view
from breaks.lab.predict import Prediction, ask, choices
from breaks.lab.run import DEFAULT_MODEL, Asked, run

PICTURE = Path(__file__).parents[2] / ".github" / "assets" / "cut-signature.svg"
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.S)  # it would fetch a font
SEED = 20  # the order of the four sentences
LEFT_OUT = {"Seen in the wild", "What to try next"}  # links and reading do not belong in a picture


def draw() -> str:
    """Return the picture of one run as SVG text."""
    brk = find("cut-signature")
    seen = run(Asked(brk, DEFAULT_MODEL, brk.accounts[0], "cassette"))
    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text("$ uv run break cut-signature\n"))
    rich_view.render(page.before(seen), console, more=True)
    seen = seen.with_prediction(_asked(console))
    console.print()
    rich_view.render([each for each in page.after(seen) if each.heading not in LEFT_OUT], console)
    return console.export_svg(title="break-the-loop", code_format=_FORMAT)


def _asked(console: Console) -> Prediction:
    """Ask as the program asks, and answer: refused, and the sentence about a signature."""
    offered = choices("E1", SEED)
    answers = iter(["refused", str([choice.rule for choice in offered].index("E1") + 1)])

    def say(line: str) -> None:
        console.print(Text(line))

    def read(prompt: str) -> str:
        answer = next(answers)
        say(prompt + answer)
        return answer

    return ask(read, say, lambda: offered)


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(), encoding="utf-8")
