"""What the tests run on Spark."""

from __future__ import annotations

PROGRAM = """
    import pathlib

    def once(marker):
        try:
            pathlib.Path(marker).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def executor():
        pid = os.getpid()
        while b"CoarseGrainedExecutorBackend" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return pid

    async def main(worker, how="", marker=""):
        seen = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream = stream.exchange(lambda n: n)
            stream.inspect(lambda time, n: seen.append(n))
            probe = stream.probe()
        handle.advance_to(worker.resume_at)
        print("life of", worker.index)
        print("a word of", worker.index, file=sys.stderr)
        for time in range(worker.resume_at, 40):
            handle.send(range(time, time + 4))
            handle.advance_to(time + 1)
            await probe.wait_passed(time)
            if time == 20 and worker.index == 1 and how not in ("", "stay"):
                if how == "raise":
                    raise ValueError("oh no")
                if once(marker):
                    os.kill(executor() if how == "executor" else os.getpid(), signal.SIGKILL)
        if how == "stay":
            try:
                print("staying", worker.index)
                await trio.sleep_forever()
            finally:
                print("finally of", worker.index)
        return worker.resume_at, sum(seen)
"""


def require_right(results: list[tuple[int, int]]) -> None:
    """What the workers returned together is the sum of all records since the snapshot that they went on from."""
    start = results[0][0]
    right = len(results) * sum(n for time in range(start, 40) for n in range(time, time + 4))
    assert sum(total for _, total in results) == right
