"""A correct agent loop, each part in a file that can be read in one sitting.

Read in this order: `agent.py` (the loop), `turns.py` (the only code that adds to the
message list), `dispatch.py` (one result per call id), `call.py`, `walker.py` (the two
rules, checked), `store.py` (resume), `desk.py` (the tools that the examples use).
"""
