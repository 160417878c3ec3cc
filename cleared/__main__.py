"""``python -m cleared``."""

from cleared.cli import main

if __name__ == "__main__":
    main()
