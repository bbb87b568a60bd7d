"""``python -m nexmark``."""

import sys

from nexmark.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
