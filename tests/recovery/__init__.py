"""Tests of snapshots and recovery: storages, formats, retention, commands."""
