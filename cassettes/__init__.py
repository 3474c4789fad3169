"""The provider's side of the kit: recorded exchanges, and the stand-in that they were recorded from."""
