"""The program around the breaks: doors, the scene that is played, recording, prediction, screens."""
