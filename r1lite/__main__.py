"""`python -m r1lite`, the same as the command `r1lite`."""

import sys

from r1lite.cli import main

if __name__ == "__main__":  # processes of a pipeline import this module under another name
    sys.exit(main())
