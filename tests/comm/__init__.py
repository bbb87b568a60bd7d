"""Tests of `dataflow.comm`: one conformance suite for all transports, flow control, hostile peers, a fuzzer.

- `rig`: the transports, each as a way to run a script on several ends.
- `values`: rows of every plain type.
- `fuzz`: `run_case(seed)`, random damage to streams of frames.
"""
