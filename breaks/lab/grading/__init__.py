"""Grading on the wire: a learner's loop in a process of its own, judged by what reached the stand-in."""
