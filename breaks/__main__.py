"""`python -m breaks`: the command line, where the shell's own `break` stands in the way."""

from breaks.lab.cli import main

if __name__ == "__main__":
    main()
