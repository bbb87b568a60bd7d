"""``python -m planners``: see `planners.command`."""

import sys

from planners.command import main

sys.exit(main())
