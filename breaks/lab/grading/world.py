"""Random worlds for the checks: a question, the tools that know the answer, and the facts it has to hold.

A world is made so that the scripted clerk asks for exactly what a check needs (`cassettes/stand_in/wants.py`
says what it reads): each tool's description shares one word with the question, ids stand in the question or
come out of another tool. Names, ids, facts and orders are random, so no answer can be known beforehand.

Not here: what goes wrong on the way (`provider.py`), and any judging.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from cassettes.stand_in.plan import Lookup, lookup

# Words with nothing in common for the clerk, who looks at six letters of each.
_NOUNS = """
    anchor badge basket battery blanket bottle bridge bucket button camera candle carpet castle cattle copper
    cradle curtain engine fabric feather ferry filter garage garden guitar hammer harbour helmet jacket kettle
    ladder lantern magnet meadow mirror motor needle orchard oven parcel pencil pepper pillow pipeline planet
    pocket pump quarry radio ribbon rocket saddle sailor scooter shelf silver socket station tariff tunnel
    turbine velvet vessel violin wallet warranty window
"""
NOUNS = _NOUNS.split()
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
ROOM = 6_000  # tokens that a list may have where there is a budget, beside the question and the tools
NAMES = ("Zoë", "Søren", "Małgorzata", "Iñigo", "Jürgen")


@dataclass(frozen=True)
class Output:
    """What a tool returns for one input: its text, and the fact in it that the answer has to hold."""

    text: str
    fact: str


@dataclass(frozen=True)
class ToolSpec:
    """A tool of a world: its definition as the API takes it, and what it returns, by lookup.

    `more`: makes the output for a lookup that is not listed, for a tool that never comes to an end.
    """

    definition: Mapping[str, Any]
    outputs: Mapping[Lookup, Output] = field(default_factory=dict)
    more: Callable[[Lookup], Output] | None = None

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return str(self.definition["name"])

    def run(self, item: Lookup) -> Output | None:
        """What it returns for a lookup, or None for an input that it does not know."""
        return self.outputs.get(item) or (self.more(item) if self.more and item.tool == self.name else None)


@dataclass(frozen=True)
class World:
    """A question, the tools that are served, and the lookups that it calls for, round by round.

    `ghosts`: definitions that only the model knows. `troubled`: the tools that something happens to.
    `says`: what a reply without any lookup has to say. `budget`: tokens, where the world has one. `drafts`:
    lookups of which the first run brings a long text that is no answer yet, with its weight in tokens (0: as
    much as there is room for, and a little more); `filler`: what it is made of.
    """

    question: str
    tools: tuple[ToolSpec, ...]
    rounds: tuple[tuple[Lookup, ...], ...] = ()
    ghosts: tuple[Mapping[str, Any], ...] = ()
    troubled: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    budget: int = 0
    drafts: Mapping[Lookup, int] = field(default_factory=dict)
    filler: str = ""

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """All lookups that the question calls for and a served tool can answer."""
        return tuple(item for each in self.rounds for item in each)

    @property
    def facts(self) -> dict[Lookup, str]:
        """The fact that each lookup brings."""
        return {item: output.fact for item in self.lookups if (output := self.find(item)) is not None}

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tool definitions as a loop fetches them."""
        return [dict(tool.definition) for tool in self.tools]

    def find(self, item: Lookup) -> Output | None:
        """What the tool of a lookup returns for it; None if there is no such tool or input."""
        return next((out for tool in self.tools if (out := tool.run(item)) is not None), None)

    def draft(self, length: int) -> str:
        """An output of about this many characters with no fact in it."""
        return json.dumps({"state": "still being put together, ask again", "log": self.filler[:length]})


class _Maker:
    """Draws names and values that are all different from each other."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.nouns = rng.sample(NOUNS, k=len(NOUNS))
        self.prefixes = ["".join(rng.sample(LETTERS, k=2)) for _ in range(60)]
        self.prefixes = list(dict.fromkeys(self.prefixes))

    def word(self, length: int = 4) -> str:
        return "".join(self.rng.choices("bcdfghkmnpqrstvwxz", k=length))

    def number(self, digits: int = 6) -> int:
        return self.rng.randrange(10 ** (digits - 1), 10**digits)

    def ident(self, prefix: str) -> str:
        return f"{prefix}-{self.number()}"

    def param(self) -> str:
        return f"{self.rng.choice(('ref', 'code', 'file', 'case'))}_{self.word()}"

    def tool_name(self, noun: str) -> str:
        return f"{self.rng.choice(('get', 'read', 'fetch', 'look_up'))}_{noun}_{self.word(3)}"

    def fact(self) -> str:
        """A fact that nobody can guess, and that no pattern of an id fits."""
        return f"{self.word(3)}{self.number(5)}{self.word(3)}"

    def mixed(self, items: Sequence[Any]) -> list[Any]:
        return self.rng.sample(list(items), k=len(items))


def _definition(name: str, noun: str, **params: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": params, "required": list(params)}
    return {"name": name, "description": f"The {noun}.", "input_schema": schema}


def _coded(prefix: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{prefix}-[0-9]{{6}}$"}


def _output(summary: str, fact: str, **more: Any) -> Output:
    return Output(json.dumps({**more, "summary": summary}, ensure_ascii=False), fact)


def _about(noun: str, ident: object, fact: str, **more: Any) -> Output:
    return _output(f"{noun} of {ident}: {fact} – ✓", fact, **more)


def _asking(make: _Maker, nouns: Sequence[str], of: object) -> str:
    *most, last = [f"the {noun}" for noun in nouns]
    listed = f"{', '.join(most)} and {last}" if most else last
    return f"Please tell me {listed} of {of}. {make.rng.choice(NAMES)}"


def _decoy(make: _Maker) -> ToolSpec:
    """A tool that the question has nothing to do with."""
    noun, name = make.nouns.pop(), make.param()
    return ToolSpec(_definition(make.tool_name(noun), noun, **{name: _coded(make.prefixes.pop())}))


def plain(rng: Random) -> World:
    """No tool can help: the model asks back, for a thing whose name is random."""
    make = _Maker(rng)
    noun, name = make.nouns.pop(), make.param()
    tool = ToolSpec(_definition(make.tool_name(noun), noun, **{name: _coded(make.prefixes.pop())}))
    question = f"Please tell me about the {noun}. {rng.choice(NAMES)}"
    return World(question, tuple(make.mixed([tool, _decoy(make)])), says=(name,))


def single(rng: Random) -> World:
    """One lookup, whose input is a text and a whole number."""
    make = _Maker(rng)
    noun, name, count = make.nouns.pop(), make.param(), make.param()
    prefix = make.prefixes.pop()
    ident, number, fact = make.ident(prefix), make.number(), make.fact()
    tool_name = make.tool_name(noun)
    definition = _definition(tool_name, noun, **{name: _coded(prefix), count: {"type": "integer"}})
    item = lookup(tool_name, {name: ident, count: number})
    tool = ToolSpec(definition, {item: _about(noun, ident, fact)})
    question = _asking(make, [noun], f"{ident}, {number}")
    return World(question, tuple(make.mixed([tool, _decoy(make)])), ((item,),))


def _side_by_side(make: _Maker, count: int) -> tuple[str, list[str], list[ToolSpec], list[Lookup]]:
    prefix, name = make.prefixes.pop(), make.param()
    ident, tools, items, nouns = make.ident(prefix), [], [], []
    for _ in range(count):
        noun, fact = make.nouns.pop(), make.fact()
        tool_name = make.tool_name(noun)
        item = lookup(tool_name, {name: ident})
        definition = _definition(tool_name, noun, **{name: _coded(prefix)})
        tools.append(ToolSpec(definition, {item: _about(noun, ident, fact)}))
        items.append(item)
        nouns.append(noun)
    return ident, nouns, tools, items


def parallel(rng: Random) -> World:
    """Two, three or four lookups that do not need each other, so the model asks for them in one turn."""
    make = _Maker(rng)
    ident, nouns, tools, items = _side_by_side(make, rng.choice((2, 3, 4)))
    served = tuple(make.mixed([*tools, _decoy(make)]))
    return World(_asking(make, make.mixed(nouns), ident), served, (tuple(items),))


def pair(rng: Random) -> World:
    """Two lookups of one turn, the first of whose tools is the troubled one."""
    make = _Maker(rng)
    ident, nouns, tools, items = _side_by_side(make, 2)
    served = tuple(make.mixed([*tools, _decoy(make)]))
    question = _asking(make, make.mixed(nouns), ident)
    return World(question, served, (tuple(items),), troubled=(items[0].tool,))


def ghost(rng: Random) -> World:
    """Two lookups of one turn, one of them with a tool that the loop never defined."""
    world = pair(rng)
    gone = world.troubled[0]
    return replace(
        world,
        tools=tuple(tool for tool in world.tools if tool.name != gone),
        ghosts=tuple(tool.definition for tool in world.tools if tool.name == gone),
        rounds=(tuple(item for item in world.lookups if item.tool != gone),),
    )


def _then(make: _Maker, count: int) -> World:
    """A first turn of `count` lookups, and a second one whose input only the first tool can tell."""
    ident, nouns, tools, items = _side_by_side(make, count)
    noun, name, prefix, fact = make.nouns.pop(), make.param(), make.prefixes.pop(), make.fact()
    later, tool_name = make.ident(prefix), make.tool_name(noun)
    first = tools[0].outputs[items[0]]
    told = _about(nouns[0], ident, first.fact, **{name: later})
    tools[0] = replace(tools[0], outputs={items[0]: told})
    item = lookup(tool_name, {name: later})
    definition = _definition(tool_name, noun, **{name: _coded(prefix)})
    second = ToolSpec(definition, {item: _about(noun, later, fact)})
    served = tuple(make.mixed([*tools, second, _decoy(make)]))
    question = _asking(make, make.mixed([*nouns, noun]), ident)
    return World(question, served, (tuple(items), (item,)), troubled=(tool_name,))


def two_rounds(rng: Random) -> World:
    """One lookup, and a second one whose input only the first can tell."""
    return _then(_Maker(rng), 1)


def mixed(rng: Random) -> World:
    """Two lookups of one turn, and a third one whose input only one of them can tell."""
    return _then(_Maker(rng), 2)


def _chain(rng: Random, length: int) -> World:
    make = _Maker(rng)
    noun, name, prefix = make.nouns.pop(), make.param(), make.prefixes.pop()
    tool_name = make.tool_name(noun)
    idents = list(dict.fromkeys(make.ident(prefix) for _ in range(2 * length)))[:length]
    outputs, items = {}, []
    for place, ident in enumerate(idents):
        more = {name: idents[place + 1]} if place + 1 < length else {}
        items.append(lookup(tool_name, {name: ident}))
        outputs[items[-1]] = _about(noun, ident, make.fact(), **more)
    tool = ToolSpec(_definition(tool_name, noun, **{name: _coded(prefix)}), outputs)
    served = tuple(make.mixed([tool, _decoy(make)]))
    return World(_asking(make, [noun], idents[0]), served, tuple((item,) for item in items))


def chain(rng: Random) -> World:
    """Eight rounds, each of which needs the one before."""
    return _chain(rng, 8)


def drafted(rng: Random) -> World:
    """Two rounds, each of which first brings a draft: the second one fits only where the first is taken out.

    What the answer needs is short, and fits beside either of them.
    """
    world = _chain(rng, 2)
    beside = len(json.dumps([world.question, world.definitions])) // 4
    first, second = world.lookups
    filler = " ".join("".join(rng.choices("bcdfghkmnpqrstvwxz", k=7)) for _ in range(ROOM // 2))
    drafts = {first: ROOM * 9 // 20, second: 0}
    return replace(world, budget=beside + ROOM, drafts=drafts, filler=filler)


def endless(rng: Random) -> World:
    """Four tools, each of which names an input for the next: the model never comes to an end."""
    make = _Maker(rng)
    prefixes = [make.prefixes.pop() for _ in range(4)]
    names, nouns = [make.param() for _ in range(4)], [make.nouns.pop() for _ in range(4)]
    tool_names = [make.tool_name(noun) for noun in nouns]
    secret = make.word(8)

    def more(place: int) -> Callable[[Lookup], Output]:
        after = (place + 1) % 4

        def run(item: Lookup) -> Output:
            drawn = Random(f"{secret}/{item.text}")
            fact = f"{secret[:3]}{drawn.randrange(10**4, 10**5)}"
            ident = f"{prefixes[after]}-{drawn.randrange(10**5, 10**6)}"
            return _about(nouns[place], item.input.get(names[place]), fact, **{names[after]: ident})

        return run

    tools = [
        ToolSpec(_definition(tool_names[n], nouns[n], **{names[n]: _coded(prefixes[n])}), more=more(n))
        for n in range(4)
    ]
    ident = make.ident(prefixes[0])
    first = lookup(tool_names[0], {names[0]: ident})
    return World(_asking(make, nouns, ident), tuple(make.mixed(tools)), ((first,),))
