"""`python -m r1lite`, the same as the command `r1lite`."""

import sys

from r1lite.cli import main

sys.exit(main())
