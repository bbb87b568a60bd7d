"""``python -m planners.spark``, and what spark-submit is given."""

import sys

from planners.spark.command import main

if __name__ == "__main__":
    sys.exit(main())
