"""`python -m shoal` is `shoal`."""

from shoal.agents.cli.entry import main

if __name__ == "__main__":
    main()
