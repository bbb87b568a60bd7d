"""The live page of a run: `python -m dataflow page RUN`, or `run --page`. A process of its own, on loopback.

- `seeing`: from two readings of a run to what a look has: rates, shares, latencies. `shapes`: the graph as it is
  drawn; `layers`: where operators are on it. `latency`: what is kept for curves. All pure.
- `questions`: what the page asks a run, as plain data. `feed`: asks once a second while somebody watches.
- `guard`: who may ask: a token, and no other origin. `app`: the addresses. `serving`: hypercorn under trio.
- `beside`: a page that begins and ends with its run.
- `static/`: the page itself, plain scripts without a build; `uplot.js` is uPlot, under its own licence.

The page is given nothing but what `status`, `explain`, `trace` and `migrate` say. docs/operating.md has how it is used.
"""
