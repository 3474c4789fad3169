"""Agreement with the provider: the project's own corpus, and public evidence where it is at hand."""
