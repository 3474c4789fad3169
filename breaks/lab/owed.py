"""What the provider was owed in a later request, and is not there: found from exchanges alone.

Every response that was accepted owes its content blocks to every later request of the
same conversation, and each of its calls one result, together in one message.

1. Turns. A returned turn is looked for where all its blocks stand, then by its call ids, then by any
   equal block, then by its place among the assistant turns; a block in the list is claimed once, so two
   equal turns need two places. Assistant turns that the first request already held claim too.
2. Blocks. Equal JSON values are the same block (key order and 1 against 1.0 do not count,
   true is not 1). A block without an equal is `changed` where a block of its kind (or its
   call id) stands in the turn unclaimed, `wrong-id` where only the id differs, else `absent`.
3. Results, as sent, turn by turn: one per call (`absent`), those of one turn in one message (`split`),
   under a call's own id (`wrong-id`), and between two consecutive requests with the same content
   and error flag (`result-content`, `error-flag`). Their order is free. The results of turns that the first
   request held are as owed as they stood there.

A loss is reported once, at the first request that shows it. Takes any JSON. Does not judge what was added
to a list, and does not look at anything but the message lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from breaks.lab.parts import (
    IDENTIFIED,
    Block,
    Exchange,
    Listed,
    Placed,
    accepted,
    assistant_turns,
    blocks_of,
    call_ids,
    content_of,
    describe,
    ident_of,
    listed,
    messages_of,
    shown,
)
from loop.walker import same

Keyed = tuple[tuple[Any, ...], "Loss"]


@dataclass(frozen=True)
class Loss:
    """One thing that was owed: where it should stand, what happened to it, and what it is.

    `kind`: absent, changed, split, wrong-id, error-flag, result-content or turn-absent. `block`: the type
    of the block, "" for a whole turn; `key`: the field of it that differs, if it is one.
    """

    path: str
    kind: str
    what: str
    exchange: int = 0  # the number of the exchange whose request has that path
    block: str = field(default="", compare=False)
    key: str = field(default="", compare=False)


@dataclass(frozen=True)
class _Owed:
    """A returned turn; `number` is None for one that the first request held already."""

    number: int | None
    blocks: list[Block]
    place: int = 0  # where it stands in a list that is only appended to
    continues: bool = False  # it goes on with the turn that its request ended in


@dataclass
class _Claim:
    """What one owed turn found in one request: its turn there, and its equal blocks."""

    turn: int | None = None
    found: dict[int, Placed] = field(default_factory=dict)


@dataclass(frozen=True)
class _Request:
    """The list that was sent, what the owed turns claim of it, and what nobody claims, turn by turn."""

    sent: Listed
    claims: list[_Claim]
    free: list[list[Placed]]


def losses(exchanges: Sequence[Exchange]) -> list[Loss]:
    """Return every loss, each at the request that shows it first."""
    seen: dict[tuple[Any, ...], Loss] = {}
    owed: list[_Owed] = []
    before: _Request | None = None
    for n, exchange in enumerate(exchanges):
        messages = messages_of(exchange.request)
        if n == 0:
            owed += [_Owed(None, [p.block for p in turn]) for turn in assistant_turns(messages)]
        now = _read(owed, messages)
        for key, loss in _compare(owed, before, now) if before else ():
            seen.setdefault((*key, loss.kind), replace(loss, exchange=n))
        if accepted(exchange):
            continues = bool(messages) and messages[-1].get("role") == "assistant"
            owed.append(_Owed(n, content_of(exchange.response), len(messages), continues))
        before = now
    return list(seen.values())


def losses_since(earlier: list[dict[str, Any]], returned: Any, messages: list[dict[str, Any]]) -> list[Loss]:
    """Return what a list lost of the list before it and of the turn that was returned to that one.

    An assistant turn that was sent before is taken to be as the provider returned it.
    """
    turns = assistant_turns(earlier)
    owed = [_Owed(n, [p.block for p in turn], turn[0].i) for n, turn in enumerate(turns) if turn]
    before = _read(owed, earlier)
    continues = bool(earlier) and earlier[-1].get("role") == "assistant"
    if returned is not None:
        owed.append(_Owed(len(turns), blocks_of(returned), len(earlier), continues))
    return list({(*k, loss.kind): loss for k, loss in _compare(owed, before, _read(owed, messages))}.values())


def _read(owed: Sequence[_Owed], messages: list[dict[str, Any]]) -> _Request:
    found = listed(messages)
    return _Request(found, *_claims(owed, found.turns))


def _compare(owed: Sequence[_Owed], before: _Request, now: _Request) -> Iterator[Keyed]:
    for one, claim in zip(owed, now.claims, strict=True):
        if one.number is not None:
            yield from _block_losses(one, claim, now)
    yield from _result_losses(owed, now)
    yield from _result_changes(before, now)


# -- turns --------------------------------------------------------------------------

Fit = Callable[[_Owed, Sequence[Placed], Sequence[Placed]], int]  # of a turn, unclaimed and whole; 0: no fit


def _claims(owed: Sequence[_Owed], turns: list[list[Placed]]) -> tuple[list[_Claim], list[list[Placed]]]:
    """Find each owed turn and claim its equal blocks, the surest fits first."""
    free, claims = [list(turn) for turn in turns], [_Claim() for _ in owed]
    for fit in (_whole, _contained, _by_id, _by_block, _by_place):
        cursor = 0
        for one, claim in zip(owed, claims, strict=True):
            if claim.turn is None and one.blocks:
                start = max(0, cursor - one.continues)
                claim.turn = _best(one, fit, free, turns, start)
                if claim.turn is not None:
                    _take(one, claim, free)
            cursor = cursor if claim.turn is None else claim.turn + 1
    return claims, free


def _best(
    one: _Owed, fit: Fit, free: list[list[Placed]], turns: list[list[Placed]], start: int
) -> int | None:
    """Return the turn that fits best; of equal ones the first at or after `start`, else the first."""
    if fit is _by_place:
        return start if start < len(turns) and fit(one, free[start], turns[start]) else None
    best, most = None, 0
    for n in (*range(start, len(turns)), *range(min(start, len(turns)))):
        grade = fit(one, free[n], turns[n])
        if grade > most:
            best, most = n, grade
        if grade and fit in (_whole, _contained):
            break
    return best


def _take(one: _Owed, claim: _Claim, free: list[list[Placed]]) -> None:
    assert claim.turn is not None
    for k, block in enumerate(one.blocks):
        twin = next((p for p in free[claim.turn] if same(p.block, block)), None)
        if twin is not None:
            claim.found[k] = twin
            free[claim.turn] = _less(free[claim.turn], twin)


def _less(places: list[Placed], one: Placed) -> list[Placed]:
    return [placed for placed in places if placed is not one]


def _whole(one: _Owed, free: Sequence[Placed], turn: Sequence[Placed]) -> int:
    pairs = zip(one.blocks, free, strict=False)
    return int(len(free) == len(turn) == len(one.blocks) and all(same(b, p.block) for b, p in pairs))


def _contained(one: _Owed, free: Sequence[Placed], turn: Sequence[Placed]) -> int:
    return int(len(free) >= len(one.blocks) and _equals(one, free) == len(one.blocks))


def _by_id(one: _Owed, free: Sequence[Placed], turn: Sequence[Placed]) -> int:
    shared = _ids(one.blocks) & _ids([p.block for p in free])
    return len(shared) * (1 + len(one.blocks)) + _equals(one, free) if shared else 0


def _by_block(one: _Owed, free: Sequence[Placed], turn: Sequence[Placed]) -> int:
    return _equals(one, free)


def _by_place(one: _Owed, free: Sequence[Placed], turn: Sequence[Placed]) -> int:
    return int(len(free) == len(turn) > 0)


def _equals(one: _Owed, free: Sequence[Placed]) -> int:
    left = list(free)
    for block in one.blocks:
        twin = next((p for p in left if same(p.block, block)), None)
        left = left if twin is None else _less(left, twin)
    return len(free) - len(left)


def _ids(blocks: Sequence[Block]) -> set[str]:
    return {ident_of(block.get("id")) for block in blocks if block.get("type") in IDENTIFIED}


# -- blocks -------------------------------------------------------------------------


def _block_losses(one: _Owed, claim: _Claim, now: _Request) -> Iterator[Keyed]:
    if not one.blocks:  # an empty turn has nothing to send back
        return
    if claim.turn is None:
        which = ", ".join(describe(block) for block in one.blocks)
        what = f"the whole assistant turn that was returned here: {which}"
        yield (one.number,), Loss(f"messages[{one.place}]", "turn-absent", what)
        return
    at = min((p.i for p in now.sent.turns[claim.turn]), default=0)
    for k, block in enumerate(one.blocks):
        if k not in claim.found:
            rival = _rival(block, now.free[claim.turn])
            if rival is not None:
                now.free[claim.turn] = _less(now.free[claim.turn], rival)
                for loss in _changes(block, rival):
                    yield (one.number, k, loss.what), loss
            else:
                what = f"block {k} of the {len(one.blocks)} that were returned: {describe(block)}"
                lost = Loss(f"messages[{at}]", "absent", what, block=str(block.get("type")))
                yield (one.number, k), lost
    order = [claim.found[k][:2] for k in sorted(claim.found)]
    if order != sorted(order):
        yield (one.number, "order"), Loss(f"messages[{at}]", "changed", "order of the blocks of this turn")


def _rival(block: Block, free: list[Placed]) -> Placed | None:
    """Return the unclaimed block that stands where `block` stood: its id, else its kind."""
    alike = [p for p in free if same(p.block.get("type"), block.get("type"))]
    by_id = [p for p in alike if "id" in block and same(p.block.get("id"), block["id"])]
    return next(iter(by_id or alike), None)


def _changes(block: Block, rival: Placed) -> Iterator[Loss]:
    """Name the fields in which the block that was sent differs from the one that was returned."""
    sent, kind = rival.block, str(block.get("type"))
    for key in sorted(block.keys() | sent.keys()):
        if key in block and key in sent and same(block[key], sent[key]):
            continue
        if key == "id":
            what = f"id of {describe(block)}: sent as {shown(sent.get('id'))}"
            yield Loss(rival.path, "wrong-id", what, block=kind, key=key)
            continue
        how = "gone" if key not in sent else "added" if key not in block else _sizes(block[key], sent[key])
        what = f"field `{key}` of {describe(block)}: {how}"
        yield Loss(rival.path, "changed", what, block=kind, key=key)


def _sizes(returned: Any, sent: Any) -> str:
    if isinstance(returned, str) and isinstance(sent, str):
        if len(returned) != len(sent):
            return f"{len(returned)} characters returned, {len(sent)} sent"
        first = next(k for k in range(len(sent)) if returned[k] != sent[k])
        return f"differs from character {first + 1} on"
    return "another value"


# -- results ------------------------------------------------------------------------


def _result_losses(owed: Sequence[_Owed], now: _Request) -> Iterator[Keyed]:
    """Name what the calls of returned turns are owed in this request, and results of no call."""
    for k, (one, claim) in enumerate(zip(owed, now.claims, strict=True)):
        calls = Counter(call_ids(one.blocks))
        if one.number is None or claim.turn is None or not calls:
            continue
        answers = {ident: now.sent.answers(claim.turn, ident) for ident in calls}
        for ident, count in calls.items():
            if len(answers[ident]) < count:
                path = _after(now.sent.turns[claim.turn])
                yield ("result", k, ident), Loss(path, "absent", f"result of call {ident}")
        if _apart(answers.values()):
            yield ("split", k), _split(answers.values())
    known = {ident for one in owed for ident in call_ids(one.blocks)}
    for ident in now.sent.strays.keys() - known:
        path = now.sent.strays[ident][0].path
        yield ("stray", ident), Loss(path, "wrong-id", f"result under id {ident}, which no call has")


def _after(turn: list[Placed]) -> str:
    """Return the path of the message that answers a turn."""
    return f"messages[{max((p.i for p in turn), default=0) + 1}]"


def _apart(answers: Any) -> bool:
    """Tell whether no one message holds a result of every call that has one."""
    standing = [{placed.i for placed in places} for places in answers if places]
    return len(standing) > 1 and not set.intersection(*standing)


def _split(answers: Any) -> Loss:
    stands = sorted({placed.i for places in answers for placed in places})
    where = ", ".join(f"messages[{i}]" for i in stands)
    what = f"the results of one turn stand in {len(stands)} messages: {where}"
    return Loss(f"messages[{stands[-1]}]", "split", what)


def _result_changes(before: _Request, now: _Request) -> Iterator[Keyed]:
    """Compare the results of two consecutive requests, turn by turn."""
    sent = [_Owed(None, [p.block for p in turn]) for turn in before.sent.turns]
    homes = [claim.turn for claim in _claims(sent, now.sent.turns)[0]]
    owners = {claim.turn: k for k, claim in enumerate(before.claims)}
    apart: dict[int, dict[str, list[Placed]]] = {}
    for (turn, ident), old in before.sent.results.items():
        key, home = owners.get(turn, ("sent", turn)), homes[turn]
        new = now.sent.answers(home, ident)
        if new:
            yield from _changed(key, ident, old, new, before.sent)
            apart.setdefault(turn, {})[ident] = new
        elif home is not None and ident in call_ids([p.block for p in now.sent.turns[home]]):
            yield ("result", key, ident), Loss(old[0].path, "absent", f"result of call {ident}")
    for ident, old in before.sent.strays.items():
        yield from _changed("stray", ident, old, now.sent.strays.get(ident, []), before.sent)
    for turn, answers in apart.items():
        if _apart(answers.values()) and not _apart(before.sent.answers(turn, ident) for ident in answers):
            yield ("split", owners.get(turn, ("sent", turn))), _split(answers.values())


def _changed(
    key: Any, ident: str, old: Sequence[Placed], new: Sequence[Placed], before: Listed
) -> Iterator[Keyed]:
    for n, (was, is_now) in enumerate(zip(old, new, strict=False)):
        if not same(_content(was.block), _content(is_now.block)):
            yield ("content", key, ident, n), _moved(ident, before, is_now)
        if bool(was.block.get("is_error")) != bool(is_now.block.get("is_error")):
            word = "gone" if was.block.get("is_error") else "added"
            what = f"is_error of the result of {ident}: {word}"
            yield ("flag", key, ident, n), Loss(is_now.path, "error-flag", what)


def _content(block: Block) -> Any:
    """Return the content of a result: a string is one text block, none is no block, an oddity stays."""
    content = block.get("content")
    return [] if content is None else blocks_of(content) if isinstance(content, str) else content


def _moved(ident: str, before: Listed, new: Placed) -> Loss:
    """Tell a result that stands under another call's id from one whose content changed."""
    for (_, other), places in before.results.items():
        if other != ident and same(_content(places[0].block), _content(new.block)):
            return Loss(new.path, "wrong-id", f"result of {other} stands under id {ident}")
    return Loss(new.path, "result-content", f"content of the result of {ident}")
