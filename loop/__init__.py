"""A correct agent loop, each part in a file that can be read in one sitting.

The loop: `agent.py` (call, keep, run, answer, repeat), `turns.py` (the only code that adds
to the message list), `unbroken.py` (what Ctrl-C must not part), `dispatch.py` (one result per
call id), `call.py`, `walker.py` (the two rules, checked), `desk.py` (the tools of the examples).

The loop that survives: `store.py` and `store_file.py` (a conversation on disk, resumed from
the list alone), `retry.py` (the HTTP call and nothing else), `interruptions.py` (three counters),
`trim.py` (whose unit is the pair), `container.py` and `from_openai.py` (the same pairing in
the other container), `async_agent.py`, `stream.py`.

The guard: `guard.py` (the walker in front of every request of an SDK client), with `memory.py`
(what was returned), `keys.py` (what it is known by), `spelling.py` (a list in short), `compare.py`
(what became of it), `models.py`.

`faults.py` interrupts any of it at a named point, for tests.
"""
