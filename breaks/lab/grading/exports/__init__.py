"""Results as other programs take them: one module for each form, pure functions from results to a text.

`lines.py` JSON, one line for each submission. `junit.py` for dashboards. `gradescope.py` and `classroom50.py`
for those two, one submission each. `sheet.py` a class as CSV. `reporter.py` the reporter of GitHub Classroom.
No form may say more than the result does: an undecided result scores nothing in any of them, and what was not
offered or not checked is never written down as passed. Not here: where a text is written (`files.py`).
"""
