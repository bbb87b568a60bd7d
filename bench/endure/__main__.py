"""`python -m bench.endure`."""

import sys

from bench.endure.command import main

sys.exit(main(sys.argv[1:]))
