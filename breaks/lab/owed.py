"""What the provider was owed in a later request, and is not there: found from exchanges alone.

Every response that was accepted owes its content blocks to every later request of the
same conversation, and each of its calls one result, together in one message.

1. Turns. Neighbouring assistant messages of a request are one turn, as they are to the
   provider. A returned turn is looked for by its call ids, then by any equal block, then by
   its place among the assistant turns; a place in the list is claimed once, so two equal
   turns need two places. Assistant turns that the first request already held claim first.
2. Blocks. Equal JSON values are the same block (key order and 1 against 1.0 do not count,
   true is not 1). A block without an equal is `changed` where a block of its kind (or its
   call id) stands in the turn unclaimed, `wrong-id` where only the id differs, else `absent`.
3. Results, as sent: one per call (`absent`), those of one turn in one message (`split`), under
   a call's own id (`wrong-id`), and between two consecutive requests with the same content
   and error flag (`result-content`, `error-flag`). Their order is free.

A loss is reported once, at the first request that shows it. Does not judge what was added
to a list, and does not look at anything but the message lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from loop.walker import same

Block = dict[str, Any]
IDENTIFIED = {"tool_use", "server_tool_use", "mcp_tool_use"}


class Exchange(Protocol):
    """One request and its response, as a door keeps them."""

    request: dict[str, Any]
    status: int
    response: dict[str, Any]


@dataclass(frozen=True)
class Loss:
    """One thing that was owed: where it should stand, what happened to it, and what it is.

    `kind`: absent, changed, split, wrong-id, error-flag, result-content or turn-absent.
    """

    path: str
    kind: str
    what: str
    exchange: int = 0  # the number of the exchange whose request has that path


class Placed(NamedTuple):
    """A block and its position in the list as it was sent."""

    i: int
    j: int
    block: Block

    @property
    def path(self) -> str:
        """Return the position as `messages[i].content[j]`."""
        return f"messages[{self.i}].content[{self.j}]"


@dataclass
class _Owed:
    """A returned turn while it is being looked for in one request; `number` is None for an earlier one."""

    number: int | None
    blocks: list[Block]
    place: int = 0  # where it stands in a list that is only appended to
    continues: bool = False  # it goes on with the turn that its request ended in
    turn: int | None = None
    found: dict[int, Placed] = field(default_factory=dict)


def blocks_of(content: Any) -> list[Block]:
    """Return the blocks of a message's content; a string is one text block, an oddity none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def messages_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the message list of a request body, without what is no message."""
    listed = request.get("messages")
    return [m if isinstance(m, dict) else {} for m in listed] if isinstance(listed, list) else []


def accepted(exchange: Exchange) -> bool:
    """Tell whether the provider took the request."""
    return 200 <= exchange.status < 300


def call_ids(blocks: Sequence[Block]) -> list[str]:
    """Return the ids of the client calls among `blocks`, in order."""
    return [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def losses(exchanges: Sequence[Exchange]) -> list[Loss]:
    """Return every loss, each at the request that shows it first."""
    seen: dict[tuple[Any, ...], Loss] = {}
    returned: list[_Owed] = []
    for n, exchange in enumerate(exchanges):
        messages = messages_of(exchange.request)
        if n == 0:
            returned += [_Owed(None, [p.block for p in turn]) for turn in assistant_turns(messages)]
        else:
            earlier = messages_of(exchanges[n - 1].request)
            for key, loss in _compare(returned, earlier, messages):
                seen.setdefault((*key, loss.kind), replace(loss, exchange=n))
        if accepted(exchange):
            continues = bool(messages) and messages[-1].get("role") == "assistant"
            content = blocks_of(exchange.response.get("content"))
            returned.append(_Owed(n, content, len(messages), continues))
    return list(seen.values())


def losses_since(earlier: list[dict[str, Any]], returned: Any, messages: list[dict[str, Any]]) -> list[Loss]:
    """Return what a list lost of the list before it and of the turn that was returned to that one.

    An assistant turn that was sent before is taken to be as the provider returned it.
    """
    turns = assistant_turns(earlier)
    owed = [_Owed(n, [p.block for p in turn], turn[0].i) for n, turn in enumerate(turns) if turn]
    continues = bool(earlier) and earlier[-1].get("role") == "assistant"
    if returned is not None:
        owed.append(_Owed(len(turns), blocks_of(returned), len(earlier), continues))
    return list({(*key, loss.kind): loss for key, loss in _compare(owed, earlier, messages)}.values())


def assistant_turns(messages: Sequence[dict[str, Any]]) -> list[list[Placed]]:
    """Return the assistant turns of a list, neighbouring messages joined."""
    turns: list[list[Placed]] = []
    previous = None
    for i, message in enumerate(messages):
        if message.get("role") == "assistant":
            if previous != "assistant":
                turns.append([])
            turns[-1] += [Placed(i, j, block) for j, block in enumerate(blocks_of(message.get("content")))]
        previous = message.get("role")
    return turns


def _compare(
    returned: Sequence[_Owed], earlier: list[dict[str, Any]], messages: list[dict[str, Any]]
) -> Iterator[tuple[tuple[Any, ...], Loss]]:
    turns = assistant_turns(messages)
    owed = [_Owed(one.number, one.blocks, one.place, one.continues) for one in returned]
    free = _claim_equal(owed, turns)
    for one in owed:
        if one.number is not None:
            yield from _block_losses(one, turns, free)
    yield from _result_losses(owed, messages)
    yield from _result_changes(earlier, messages)


def _claim_equal(owed: list[_Owed], turns: list[list[Placed]]) -> list[list[Placed]]:
    """Find each owed turn and claim its equal blocks; return what stays unclaimed, turn by turn."""
    free = [list(turn) for turn in turns]
    named = [_turn_by_id(one, turns) for one in owed]
    cursor = 0
    for one, by_id in zip(owed, named, strict=True):
        cursor = max(0, cursor - one.continues)
        one.turn = by_id if by_id is not None else _turn_by_block(one, free, cursor, named)
        if one.turn is None:
            continue
        cursor = one.turn + 1
        for k, block in enumerate(one.blocks):
            twin = next((p for p in free[one.turn] if same(p.block, block)), None)
            if twin is not None:
                one.found[k] = twin
                free[one.turn].remove(twin)
    return free


def _turn_by_id(one: _Owed, turns: list[list[Placed]]) -> int | None:
    ids = {block.get("id") for block in one.blocks if block.get("type") in IDENTIFIED}
    for n, turn in enumerate(turns):
        if any(p.block.get("type") in IDENTIFIED and p.block.get("id") in ids for p in turn):
            return n
    return None


def _turn_by_block(one: _Owed, free: list[list[Placed]], cursor: int, named: list[int | None]) -> int | None:
    if not one.blocks:
        return None
    equal = [n for n, turn in enumerate(free) if any(same(p.block, b) for p in turn for b in one.blocks)]
    if equal:
        return min(equal, key=lambda n: (n < cursor, n))
    return cursor if cursor < len(free) and free[cursor] and cursor not in named else None


def _block_losses(
    one: _Owed, turns: list[list[Placed]], free: list[list[Placed]]
) -> Iterator[tuple[tuple[Any, ...], Loss]]:
    if not one.blocks:  # an empty turn has nothing to send back
        return
    if one.turn is None:
        what = "the whole assistant turn that was returned here: " + ", ".join(
            describe(block) for block in one.blocks
        )
        yield (one.number,), Loss(f"messages[{one.place}]", "turn-absent", what)
        return
    at = min((p.i for p in turns[one.turn]), default=0)
    for k, block in enumerate(one.blocks):
        if k not in one.found:
            rival = _rival(block, free[one.turn])
            if rival is not None:
                free[one.turn].remove(rival)
                for loss in _changes(block, rival):
                    yield (one.number, k, loss.what), loss
            else:
                what = f"block {k} of the {len(one.blocks)} that were returned: {describe(block)}"
                yield (one.number, k), Loss(f"messages[{at}]", "absent", what)
    order = [(one.found[k].i, one.found[k].j) for k in sorted(one.found)]
    if order != sorted(order):
        yield (one.number, "order"), Loss(f"messages[{at}]", "changed", "order of the blocks of this turn")


def _rival(block: Block, free: list[Placed]) -> Placed | None:
    """Return the unclaimed block that stands where `block` stood: its id, else its kind."""
    alike = [p for p in free if p.block.get("type") == block.get("type")]
    by_id = [p for p in alike if "id" in block and p.block.get("id") == block["id"]]
    return next(iter(by_id or alike), None)


def _changes(block: Block, rival: Placed) -> Iterator[Loss]:
    """Name the fields in which the block that was sent differs from the one that was returned."""
    sent = rival.block
    for key in sorted(block.keys() | sent.keys()):
        if key in block and key in sent and same(block[key], sent[key]):
            continue
        if key == "id":
            what = f"id of {describe(block)}: sent as {sent.get('id')}"
            yield Loss(rival.path, "wrong-id", what)
        elif key not in sent:
            yield Loss(rival.path, "changed", f"field `{key}` of {describe(block)}: gone")
        elif key not in block:
            yield Loss(rival.path, "changed", f"field `{key}` of {describe(block)}: added")
        else:
            sizes = _sizes(block[key], sent[key])
            yield Loss(rival.path, "changed", f"field `{key}` of {describe(block)}: {sizes}")


def _sizes(returned: Any, sent: Any) -> str:
    if isinstance(returned, str) and isinstance(sent, str):
        if len(returned) != len(sent):
            return f"{len(returned)} characters returned, {len(sent)} sent"
        first = next(k for k in range(len(sent)) if returned[k] != sent[k])
        return f"differs from character {first + 1} on"
    return "another value"


def describe(block: Block) -> str:
    """Say in a few words which block this is."""
    kind = str(block.get("type"))
    if kind == "thinking":
        return f"thinking block (signature of {len(str(block.get('signature') or ''))} characters)"
    if kind == "redacted_thinking":
        return f"redacted_thinking block ({len(str(block.get('data') or ''))} characters of data)"
    if kind == "text":
        text = str(block.get("text") or "")
        return f'text block "{text[:40]}{"…" if len(text) > 40 else ""}"'
    if kind in IDENTIFIED:
        return f"{kind} {block.get('name')} {block.get('id')}"
    return f"{kind} block"


def results_of(messages: Sequence[dict[str, Any]]) -> dict[str, list[Placed]]:
    """Return the tool results of a list under the call id that each one names."""
    found: dict[str, list[Placed]] = {}
    for i, message in enumerate(messages):
        for j, block in enumerate(blocks_of(message.get("content"))):
            if block.get("type") == "tool_result":
                found.setdefault(str(block.get("tool_use_id")), []).append(Placed(i, j, block))
    return found


def _result_losses(
    owed: list[_Owed], messages: list[dict[str, Any]]
) -> Iterator[tuple[tuple[Any, ...], Loss]]:
    results = results_of(messages)
    for one in owed:
        ids = [] if one.number is None else call_ids(one.blocks)
        for ident in ids:
            if ident not in results and one.turn is not None:
                yield ("result", ident), Loss(_after(one, messages), "absent", f"result of call {ident}")
        stands = sorted({p.i for ident in ids for p in results.get(ident, [])})
        if len(stands) > 1:
            where = ", ".join(f"messages[{i}]" for i in stands)
            what = f"the results of one turn stand in {len(stands)} messages: {where}"
            yield ("split", one.number), Loss(f"messages[{stands[-1]}]", "split", what)
    known = {ident for one in owed for ident in call_ids(one.blocks)}
    known |= {ident for turn in assistant_turns(messages) for ident in call_ids([p.block for p in turn])}
    for ident in results.keys() - known:
        path = results[ident][0].path
        yield ("stray", ident), Loss(path, "wrong-id", f"result under id {ident}, which no call has")


def _after(one: _Owed, messages: list[dict[str, Any]]) -> str:
    """Return the path of the message that answers an owed turn."""
    turn = assistant_turns(messages)[one.turn or 0]
    return f"messages[{max((p.i for p in turn), default=0) + 1}]"


def _result_changes(
    earlier: list[dict[str, Any]], messages: list[dict[str, Any]]
) -> Iterator[tuple[tuple[Any, ...], Loss]]:
    before, now = results_of(earlier), results_of(messages)
    calls = {ident for turn in assistant_turns(messages) for ident in call_ids([p.block for p in turn])}
    for ident, places in before.items():
        if ident not in now:
            if ident in calls:
                yield ("result", ident), Loss(places[0].path, "absent", f"result of call {ident}")
            continue
        old, new = places[0].block, now[ident][0]
        if not same(blocks_of(old.get("content")), blocks_of(new.block.get("content"))):
            yield ("content", ident), _moved(ident, before, new)
        if bool(old.get("is_error")) != bool(new.block.get("is_error")):
            word = "gone" if old.get("is_error") else "added"
            yield ("flag", ident), Loss(new.path, "error-flag", f"is_error of the result of {ident}: {word}")


def _moved(ident: str, before: dict[str, list[Placed]], new: Placed) -> Loss:
    """Tell a result that stands under another call's id from one whose content changed."""
    content = blocks_of(new.block.get("content"))
    for other, places in before.items():
        if other != ident and same(blocks_of(places[0].block.get("content")), content):
            return Loss(new.path, "wrong-id", f"result of {other} stands under id {ident}")
    return Loss(new.path, "result-content", f"content of the result of {ident}")
