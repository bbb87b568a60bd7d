"""``python -m planners``: see `planners.cli.command`."""

import sys

from planners.cli.command import main

sys.exit(main())
