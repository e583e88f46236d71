"""`python -m lurking` is the command."""

from lurking.cli import main

if __name__ == "__main__":
    main()
