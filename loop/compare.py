"""Compare a message list with what it was, and name the first place where the past was rewritten.

Neighbouring messages of one role count as one turn, as they do at the provider, and what
the provider does not compare does not count here: `cache_control`, a string against one
text block, whitespace around a text block, blank text blocks, key order, `1` against `1.0`,
the URL of an image, the order of the tools, tools that are deferred, and whatever stands
before the last compaction block. Nor do `citations: null`, which a dump of the SDK's objects
adds, and the defaults `is_error: false` and `caller: direct`: recordings show them accepted.

The sentences name types, fields and lengths, never the content; only `Change.diff` shows it.

Changes nothing and judges nothing but equality; for the pairing see `walker.py`.
https://platform.claude.com/docs/en/build-with-claude/preserved-thinking (read 2026-11-29)
"""

from __future__ import annotations

import difflib
import itertools
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from loop.walker import Finding, same

REWRITTEN, PREFIX = "rewritten-turn", "changed-prefix"
THINKING = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True)
class Change(Finding):
    """A finding that also knows what stood there before and what stands there now."""

    before: Any = field(default=None, repr=False)
    after: Any = field(default=None, repr=False)

    @property
    def diff(self) -> str:
        """Return the change as a short diff, long texts cut in the middle; empty if it has no form."""
        try:
            old, new = (
                json.dumps(_short(x), indent=1, sort_keys=True, default=repr).splitlines()
                for x in (self.before, self.after)
            )
        except Exception:  # too deep, a number of thousands of digits, a key that is no string
            return ""
        lines = list(difflib.unified_diff(old, new, "returned", "sent", n=1, lineterm=""))
        return "\n".join([*lines[:30], *(["..."] if len(lines) > 30 else [])])


@dataclass(frozen=True)
class Known:
    """One message of a list as it was; `given`: the provider returned it."""

    message: Any
    given: bool = False


@dataclass(frozen=True)
class _Placed:
    i: int
    j: int
    role: Any
    form: Any
    given: bool


def first_change(known: Sequence[Known], sent: Sequence[Any], offset: int = 0) -> Change | None:
    """Return the first place where `sent` does not begin with `known`; None if it does.

    `offset` is the index in the list of the first message of both.
    """
    was = list(_blocks([(one.message, one.given) for one in known], offset))
    now = list(_blocks([(message, False) for message in sent], offset))
    was, now = _without_seam(known, was, now)
    was, now = _after_compaction(was, now)
    for at, old in enumerate(was):
        new = now[at] if at < len(now) else None
        if new is None or new.role != old.role or not _alike(old, new):
            return _turn_change(was, now, at) if old.given else _prefix_change(old, new, offset + len(sent))
    return None


def turn_change(content: list[Any], sent: Sequence[Any], at: int) -> Change | None:
    """Return what became of a turn, of which nothing else may stand at the beginning of `sent`."""
    change = first_change([Known({"role": "assistant", "content": content}, given=True)], sent, at)
    if change is not None:
        return change
    before = _forms(content)
    own = itertools.takewhile(lambda message: message.get("role") == "assistant", sent)
    after = [form for message in own for form in _forms(message.get("content"))]
    if not before or len(after) <= len(before) or any(_type(form) == "compaction" for form in before):
        return None
    return Change(REWRITTEN, f"messages[{at}]", _losses(before, after), before, after)


def system_change(old: Any, new: Any) -> Change | None:
    """Return the change of the top-level `system` prompt, if there is one."""
    if same(_forms(old), _forms(new)):
        return None
    return Change(
        PREFIX, "system", "the system prompt is not the one that the thinking was made with", old, new
    )


def tools_change(old: Any, new: Any) -> Change | None:
    """Return the first change among the tools, compared as a set by name."""
    was, now = _by_name(old), _by_name(new)
    for name in [*was, *now]:
        if not same(was.get(name), now.get(name)):
            what = "is new" if name not in was else "is gone" if name not in now else "has another definition"
            return Change(PREFIX, "tools", f"tool {name} {what}", was.get(name), now.get(name))
    return None


def form_of(block: Any) -> Any:
    """Return a content block without what does not count."""
    if not isinstance(block, dict):
        return block
    form = {key: value if key == "input" else clean(value) for key, value in block.items()}
    form = {key: value for key, value in form.items() if key != "cache_control" and value is not None}
    if form.get("caller") == {"type": "direct"}:
        del form["caller"]
    kind = form.get("type")
    if kind == "text" and isinstance(form.get("text"), str):
        form["text"] = form["text"].strip()
    elif kind == "thinking":
        form.pop("estimated_tokens", None)
    elif kind == "tool_result":
        content = form.pop("content", None)
        listed = [{"type": "text", "text": content}] if isinstance(content, str) and content else content
        form["content"] = [_plain(b) for b in listed] if isinstance(listed, list) else listed or []
        if form.get("is_error") is False:
            del form["is_error"]
    elif kind in ("image", "document"):
        form["source"] = _source(form.get("source"))
    return form


def clean(value: Any) -> Any:
    """Return a value without cache markers and null fields, at any depth."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key != "cache_control" and item is not None}
        return {key: clean(item) for key, item in kept.items()}
    return [clean(item) for item in value] if isinstance(value, (list, tuple)) else value


def _plain(block: Any) -> Any:
    """Return a block of a result: its text counts to the last space, unlike that of a message."""
    return block if isinstance(block, dict) and block.get("type") == "text" else form_of(block)


def _source(source: Any) -> Any:
    by_url = isinstance(source, dict) and source.get("type") == "url"
    return {key: value for key, value in source.items() if key != "url"} if by_url else source


def _forms(content: Any) -> list[Any]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    forms = [form_of(block) for block in content] if isinstance(content, (list, tuple)) else []
    return [form for form in forms if not (_type(form) == "text" and form.get("text") == "")]


def _by_name(tools: Any) -> dict[str, Any]:
    listed = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, (list, tuple)) else []
    kept = [tool for tool in listed if not tool.get("defer_loading")]
    return {
        str(t.get("name")): {k: v for k, v in t.items() if k != "cache_control" and v is not None}
        for t in kept
    }


def _blocks(messages: Sequence[tuple[Any, bool]], offset: int) -> Iterator[_Placed]:
    for i, (message, given) in enumerate(messages, offset):
        if isinstance(message, dict):
            forms = _forms(message.get("content"))
            yield from (_Placed(i, j, message.get("role"), form, given) for j, form in enumerate(forms))


def _alike(old: _Placed, new: _Placed) -> bool:
    """Tell whether two blocks are the same; of half an input, only the call that it belongs to counts."""
    if same(old.form, new.form):
        return True
    if old.given and same(_finite(old.form), _finite(new.form)):
        return True
    half = old.given and isinstance(old.form, dict) and isinstance(new.form, dict)
    if not half or not _is_half(old.form.get("input")):
        return False
    return same({**old.form, "input": None}, {**new.form, "input": None})


def _finite(value: Any) -> Any:
    """Return a value with null for each number beyond the range of a double, as the SDK writes it."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_half(given: Any) -> bool:
    return isinstance(given, dict) and [*given] == ["INVALID_JSON"]


def _without_seam(
    known: Sequence[Known], was: list[_Placed], now: list[_Placed]
) -> tuple[list[_Placed], list[_Placed]]:
    """Leave out the seam of a prefill: how the two parts of such a turn are joined is free."""
    begun = known[-2] if len(known) > 1 and known[-1].given else None
    if begun is None or begun.given or not isinstance(begun.message, dict):
        return was, now
    own = [at for at, one in enumerate(was) if not one.given]
    if begun.message.get("role") != "assistant" or not own or _type(was[own[-1]].form) != "text":
        return was, now
    seam = own[-1]
    rest = was[seam + 1 :]
    rest = rest[1:] if rest and _type(rest[0].form) == "text" else rest
    tails = [now[seam + n :] for n in (1, 2)]  # as one text block, or as two
    fits = next((tail for tail in tails if rest and tail and same(tail[0].form, rest[0].form)), tails[0])
    return was[:seam] + rest, now[:seam] + fits


def _after_compaction(was: list[_Placed], now: list[_Placed]) -> tuple[list[_Placed], list[_Placed]]:
    marks = [at for at, one in enumerate(was) if _type(one.form) == "compaction"]
    for at in marks[-1:]:
        for there, one in enumerate(now):
            if same(one.form, was[at].form):
                return was[at:], now[there:]
    return was, now


def _turn_change(was: list[_Placed], now: list[_Placed], at: int) -> Change:
    """Say what became of the turn that the provider gave."""
    turn = [one for one in was if one.i == was[at].i]
    start = was.index(turn[0])
    rest = now[start:]
    stands = next((k for k, one in enumerate(rest) if one.role != "assistant"), len(rest))
    sent = rest[:stands]
    i = sent[0].i if sent else rest[0].i if rest else was[at].i
    later = [one.form for one in was if one.i > turn[0].i and one.role == "assistant"]
    forms = [one.form for one in sent if not any(same(one.form, other) for other in later)]
    before = [one.form for one in turn]
    return Change(REWRITTEN, f"messages[{i}]", _losses(before, forms), before, forms)


def _losses(before: list[Any], after: list[Any]) -> str:
    """Name the blocks of a turn that were dropped, edited or added."""
    free, lost, words = list(after), [], []
    for j, old in enumerate(before):
        twin = next((k for k, new in enumerate(free) if same(old, new)), None)
        if twin is None:
            lost.append((j, old))
        else:
            free.pop(twin)
    for j, old in lost:
        rival = next((k for k, new in enumerate(free) if _type(new) == _type(old)), None)
        what = "dropped" if rival is None else f"edited, {_fields(old, free.pop(rival))}"
        words.append(f"content[{j}] ({_type(old)}) of what the provider returned is {what}")
    words += [f"a {_type(new)} block is added" for new in free]
    return "; ".join(words[:4]) or "the blocks are not in the order in which the provider returned them"


def _fields(old: Any, new: Any) -> str:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return "no block any more"
    keys = [key for key in [*old, *(k for k in new if k not in old)] if not same(old.get(key), new.get(key))]
    return ", ".join(f"`{key}`{_sizes(old.get(key), new.get(key))}" for key in keys) or "a null field"


def _sizes(old: Any, new: Any) -> str:
    if isinstance(old, str) and isinstance(new, str) and len(old) != len(new):
        return f" ({len(old)} characters before, {len(new)} now)"
    return " (gone)" if new is None else " (added)" if old is None else " (another value)"


def _prefix_change(old: _Placed, new: _Placed | None, end: int) -> Change:
    if new is None:
        text = f"a {_type(old.form)} block of messages[{old.i}] that was sent before is missing at the end"
        return Change(PREFIX, f"messages[{end}]", text, old.form, None)
    if (new.role, _type(new.form)) == (old.role, _type(old.form)):
        text = f"a {_type(old.form)} block that was sent before is edited, {_fields(old.form, new.form)}"
    else:
        here, was = (f"{one.role} {_type(one.form)} block" for one in (new, old))
        text = f"a {here} stands where a {was} was sent before"
    return Change(PREFIX, f"messages[{new.i}].content[{new.j}]", text, old.form, new.form)


def _type(block: Any) -> str:
    return str(block.get("type"))[:40] if isinstance(block, dict) else "odd"


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 64:
        mark = zlib.crc32(value.encode("utf-8", "replace"))  # tells apart what was cut out of the middle
        return f"{value[:28]} ... {value[-12:]} ({len(value)} characters, #{mark:08x})"
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, (list, tuple)) else value
