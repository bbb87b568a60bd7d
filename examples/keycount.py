# examples/keycount.py: a running count in columns, with a compiled fold; a controller paces a batched migration
from typing import Any
import numpy as np
import dataflow
import megaphone

@megaphone.fold(state={"count": "i8"}, output={"key": "u8", "count": "i8"})
def count(key: int, value: int, state: Any) -> tuple[int, int]:
    state.count += value
    return key, state.count                     # one row out; None would be no row

async def main(worker: dataflow.Worker) -> None:
    rng = np.random.default_rng(worker.index)
    with worker.dataflow() as scope:
        control, configuration = scope.input()
        keys, stream = scope.input()
        counts = megaphone.state_machine(configuration, stream, key="key", value="diff", fold=count, bins=4096)
        probe = counts.probe()
    controller = megaphone.Controller(control, counts)
    for epoch in range(1000):
        keys.send({"key": rng.integers(0, 1 << 20, 10_000, dtype="u8"), "diff": np.ones(10_000, "i8")})
        if epoch == 500 and worker.index == 0:
            controller.migrate(to=np.zeros(4096, "u4"), strategy=megaphone.batched(64))
        controller.advance_to(epoch + 1)            # advances the control input, sending the next step when the last is done
        keys.advance_to(epoch + 1)
        await probe.wait_passed(epoch - 2)

if __name__ == "__main__":
    dataflow.execute(main, workers=2)
