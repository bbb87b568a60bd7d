"""Live state migration on top of ``dataflow``: stateful operators whose bins move between workers mid-stream.

Here belong control messages and configurations, routing (F) and state (S), bins and their tables, the notificator, the
migratable operators (``state_machine``, ``unary``, ``binary``), migration strategies and the controller that paces
them, snapshots, and in ``plans/`` the migration of whole query plans. This package knows ``dataflow`` and nothing above
itself: what should move, and where to, is decided in ``planners``.
"""
