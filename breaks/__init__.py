"""The breaks: one script per mistake, each replacing one step of the reference loop.

Open any of them beside `loop/agent.py` and `loop/turns.py`; nothing else is needed to
understand it. `_break.py` holds the form they share, `lab/` the program around them.
"""
