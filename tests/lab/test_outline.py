"""The outline of a message list: every block a line, marks of their own, nothing that acts on a terminal."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from breaks.lab.outline import outline, safe, short
from tests.lab.lists import assistant, call, result, text, thinking, user

LIST = [
    {"role": "user", "content": "which invoices?"},
    assistant(thinking("x" * 412), text("I look."), call("toolu_1", order_id="1")),
    user(result("toolu_1", "it failed", is_error=True)),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def texts(messages: Any, marks: dict[str, str] | None = None) -> list[str]:
    """Return the lines of an outline."""
    return [line.text for line in outline(messages, marks)]


def test_every_message_and_block_has_a_line() -> None:
    """Messages by number and role, blocks by number, kind and id."""
    assert texts(LIST) == [
        "messages[0] user",
        '  content "which invoices?"',
        "messages[1] assistant",
        "  content[0] thinking (no visible text), signature of 412 characters",
        '  content[1] text "I look."',
        '  content[2] tool_use get_order {"order_id": "1"} id toolu_1',
        "messages[2] user",
        '  content[0] tool_result for toolu_1 is_error "it failed"',
    ]


def test_a_mark_is_a_line_of_its_own_with_its_path() -> None:
    """The mark stands under the block it points at."""
    lines = texts(LIST, {"messages[1].content[1]": "here", "messages[2]": "and here"})
    assert lines[5] == "  ^ messages[1].content[1]: here"
    assert lines[lines.index("messages[2] user") + 1] == "  ^ messages[2]: and here"


def test_a_mark_outside_the_list_is_not_lost() -> None:
    """A place that the list does not have is pointed at all the same."""
    lines = texts(LIST, {"messages[1].content[9]": "gone", "messages[7]": "gone too"})
    assert "  ^ messages[1].content[9]: gone" in lines
    assert lines[-1] == "  ^ messages[7]: gone too"


def test_control_characters_are_visible() -> None:
    """Escape sequences, line breaks and direction marks are shown, not sent to the terminal."""
    assert safe("a\x1b[31m\n\u202eb\x9b") == "a\\x1b[31m\\n\\u202eb\\x9b"
    assert safe("a\nb", breaks=True) == "a\nb"
    line = texts([user({"type": "te\x1bxt", "id": "\x07"})])[1]
    assert "\x1b" not in line
    assert "\x07" not in line


def test_long_texts_say_how_long() -> None:
    """A shortened text carries its full length."""
    assert short("x" * 100, 10) == "x" * 10 + "… (100 characters)"


@given(JSON, st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2))
def test_any_list_has_an_outline(messages: Any, marks: dict[str, str]) -> None:
    """A list of any shape is shown without an exception, each line one line."""
    assert all(safe(line) == line for line in texts(messages, marks))
