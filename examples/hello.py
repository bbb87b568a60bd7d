# examples/hello.py: timely's hello
import dataflow

async def main(worker: dataflow.Worker) -> None:
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = stream.exchange(lambda x: x).inspect(lambda t, x: print(f"worker {worker.index} saw {x} at {t}")).probe()
    for round in range(10):
        if worker.index == 0:
            numbers.send([round])
        numbers.advance_to(round + 1)
        await probe.wait_passed(round)

if __name__ == "__main__":
    dataflow.execute(main, workers=2)
