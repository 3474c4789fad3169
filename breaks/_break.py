"""The form of a break: one wrong step, and what a learner is told before and after.

A break says nothing about what comes of it. The outcome is computed from the exchange.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import breaks
import loop.store
import loop.turns

CHAPTERS = {
    1: "Between iterations, only the message list survives",
    2: "Messages, turns & roles",
    3: "The assistant turn, then one result block per call id",
    4: "The agent loop and message lists",
    5: "The conversation is an array you own",
}

# The steps that a break may replace, and the right function for each.
RIGHT: dict[str, Callable[..., Any]] = {
    "append_turn": loop.turns.append_turn,
    "pack": loop.store.pack,
    "unpack": loop.store.unpack,
}


@dataclass(frozen=True)
class Wild:
    """One public sighting: date (YYYY-MM-DD), link, and what happened there in a few words."""

    date: str
    url: str
    what: str


@dataclass(frozen=True)
class Break:
    """One named mistake.

    `step` names the function of the reference loop that `wrong` replaces, with the same
    signature. The scene: `question` is asked of the desk; the tools in `down` fail;
    `restart_after` messages written to the store (the question included), the process is
    interrupted and the conversation resumed from its file (None: it runs through in memory).
    `needs`: what the exchange must bring for the mistake to matter (`thinking`: a thinking
    block, `parallel`: several calls in one turn). `accounts`: the account kinds that the
    lab has recordings for.
    """

    name: str
    title: str
    chapter: int
    order: int
    question: str
    careful: str
    step: str
    wrong: Callable[..., Any]
    why: str
    wild: tuple[Wild, ...]
    next: str
    variant: str = ""
    down: frozenset[str] = frozenset()
    restart_after: int | None = None
    needs: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ("enforced",)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name, with the variant where there is one: `cut-signature --variant dropped`."""
        return f"{self.name} --variant {self.variant}" if self.variant else self.name

    def expanded(self) -> list[Break]:
        """Return this break and, after it, each of its variants."""
        return [
            self,
            *(dataclasses.replace(self, variant=v, **change) for v, change in self.variants.items()),
        ]


def load_all() -> list[Break]:
    """Return every break in the order of the lessons; a variant follows its base or has its own place."""
    names = sorted(m.name for m in pkgutil.iter_modules(breaks.__path__) if not m.ispkg and m.name[0] != "_")
    bases = [importlib.import_module(f"breaks.{name}").BREAK for name in names]
    return sorted((each for base in bases for each in base.expanded()), key=lambda each: each.order)


def find(name: str, variant: str = "") -> Break:
    """Return one break. Raises `KeyError` if there is none of that name and variant."""
    for each in load_all():
        if (each.name, each.variant) == (name, variant):
            return each
    raise KeyError(f"{name} --variant {variant}" if variant else name)
