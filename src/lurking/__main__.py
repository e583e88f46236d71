"""`python -m lurking` is the command."""

from lurking.cli.entry import main

if __name__ == "__main__":
    main()
