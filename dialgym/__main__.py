"""``python -m dialgym`` is the command line: what `torchrun -m dialgym train ...` starts."""

from dialgym.cli import main

if __name__ == "__main__":
    main()
