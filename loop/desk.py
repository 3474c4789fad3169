"""A support desk: six tools over small data of its own, and a clock that stands still.

The data never ages: "this week" is the week of `TODAY`, whatever the day is outside.
The tools wait on purpose (`WAIT_MS`), so that running them side by side can be seen
and measured; a dispatch time from this desk says so wherever it is shown.

Does not touch a network, a disk or the message list.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from datetime import date, timedelta
from typing import Any

from loop.dispatch import ToolError

TODAY = date(2026, 11, 30)  # a Monday; the desk's own clock

SHORT_MS, MIDDLE_MS, LONG_MS = 40, 90, 128
WAIT_MS = {
    "get_order": SHORT_MS,
    "search_orders": SHORT_MS,
    "list_invoices": MIDDLE_MS,
    "list_open_invoices": MIDDLE_MS,
    "get_shipment": MIDDLE_MS,
    "lookup_policy": LONG_MS,
}

SYSTEM = (
    "You are the support desk of a small shop. Look facts up with the tools before you answer, "
    "ask for everything you need that does not depend on another answer in one turn, and never guess."
)

_ORDER = {"type": "string", "pattern": "^(AB-)?[0-9]{4,5}$", "description": "An order number."}
_CUSTOMER = {"type": "string", "pattern": "^cus_[0-9]+$", "description": "A customer number."}
_TOPIC = {"type": "string", "enum": ["returns", "refunds", "warranty"], "description": "What it is about."}


def _tool(name: str, description: str, **params: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": params, "required": list(params), "additionalProperties": False}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS = [
    _tool("get_order", "One sale with its charges: who was charged, how much, when.", order_id=_ORDER),
    _tool("list_invoices", "What was charged, billed and paid for one sale.", order_id=_ORDER),
    _tool("list_open_invoices", "All unpaid invoices of the account and the day each is due."),
    _tool("search_orders", "Other recent orders of one customer.", customer_id=_CUSTOMER),
    _tool("get_shipment", "Where a parcel is: carrier, last scan, day of delivery.", order_id=_ORDER),
    _tool("lookup_policy", "House rules: when goods can be returned or refunded.", topic=_TOPIC),
]

_ORDERS = {
    "AB-40912": {
        "charges": [{"id": "ch_9f", "cents": 4200}, {"id": "ch_a1", "cents": 4200}],
        "summary": "order AB-40912 (42.00) carries two charges, ch_9f and ch_a1, 42.00 each",
    },
    "4471": {"charges": [{"id": "ch_c7", "cents": 5900}], "summary": "order 4471 carries one charge, 59.00"},
}
_INVOICES = {
    "AB-40912": {
        "invoices": [{"id": "in_771", "cents": 4200, "charge": "ch_9f"}],
        "summary": "one invoice, in_771, belongs to AB-40912; charge ch_a1 has none, so it is the double one",
    },
}
_OPEN = [  # invoice, days from TODAY until it is due, cents
    ("in_801", 2, 12000),
    ("in_804", 0, 3550),
    ("in_807", 4, 48000),
    ("in_812", 9, 7725),
    ("in_815", 3, 990),
    ("in_816", 16, 6400),
    ("in_820", 1, 2210),
    ("in_823", 6, 15075),
    ("in_829", 4, 830),
    ("in_830", 23, 4100),
]
_CUSTOMERS = {"cus_8123": ["4471", "4480", "4492", "4503"]}
_SHIPMENTS = {
    "4471": ("DHL", "delivered", -3),
    "4480": ("DHL", "in the depot", 1),
    "4492": ("UPS", "on the van", 0),
    "4503": ("DHL", "announced", 3),
}
_POLICIES = {
    "returns": "Goods can be returned within 30 days of delivery, unused and in their box.",
    "refunds": "A double charge is refunded within three working days.",
    "warranty": "Two years on everything but batteries.",
}


class Desk:
    """The tools, ready to run. `down`: tools whose backend is not there. `wait`: 0 leaves the waits out."""

    def __init__(self, down: Collection[str] = (), wait: float = 1.0) -> None:
        self._down, self._wait = frozenset(down), wait

    def dispatch(self, call: dict[str, Any]) -> str:
        """Run one `tool_use` block and return its output, JSON text.

        Raises `ToolError` with a text for the model (unknown tool, nothing found), or
        what a broken backend raises.
        """
        name = call["name"]
        if name not in _RUN:
            raise ToolError(f"there is no tool named {name}")
        time.sleep(self._wait * WAIT_MS[name] / 1000)
        if name in self._down:  # such texts do turn up in exceptions, and must not reach a model
            raise ConnectionError("cannot reach postgresql://desk:not-a-password@db.invalid:5432/shop (503)")
        return json.dumps(_RUN[name](**call["input"]), ensure_ascii=False)


def _find(table: dict[str, Any], key: str, what: str) -> Any:
    if key not in table:
        raise ToolError(f"no {what} {key}")
    return table[key]


def _get_order(order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, **_find(_ORDERS, order_id, "order")}


def _list_invoices(order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, **_find(_INVOICES, order_id, "invoice for order")}


def _list_open_invoices() -> dict[str, Any]:
    rows = [{"invoice_id": i, "due": str(TODAY + timedelta(n)), "cents": cents} for i, n, cents in _OPEN]
    week = [i for i, n, _ in _OPEN if n < 7 - TODAY.weekday()]
    return {"today": str(TODAY), "invoices": rows, "summary": f"due this week: {', '.join(week)}"}


def _search_orders(customer_id: str) -> dict[str, Any]:
    found = _find(_CUSTOMERS, customer_id, "customer")
    orders = [{"order_id": order} for order in found]
    summary = f"{customer_id} has orders {', '.join(found)}"
    return {"customer_id": customer_id, "orders": orders, "summary": summary}


def _get_shipment(order_id: str) -> dict[str, Any]:
    carrier, state, days = _find(_SHIPMENTS, order_id, "shipment for order")
    day = TODAY + timedelta(days)
    summary = f"order {order_id}: {state} ({carrier}), delivery day {day}"
    return {"order_id": order_id, "carrier": carrier, "delivery": str(day), "summary": summary}


def _lookup_policy(topic: str) -> dict[str, Any]:
    return {"topic": topic, "summary": _find(_POLICIES, topic, "policy on")}


_RUN: dict[str, Callable[..., dict[str, Any]]] = {
    "get_order": _get_order,
    "list_invoices": _list_invoices,
    "list_open_invoices": _list_open_invoices,
    "search_orders": _search_orders,
    "get_shipment": _get_shipment,
    "lookup_policy": _lookup_policy,
}
