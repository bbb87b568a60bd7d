"""The live page: its pure parts, its guard, and the whole of it in a real browser."""
