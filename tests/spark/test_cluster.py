"""Real clusters: a standalone master with two workers, and `local-cluster`, whose executors are processes as well."""

from __future__ import annotations

import ast

from tests.launch.arena import Arena, wait_until
from tests.spark.programs import PROGRAM, require_right

LONG = 240.0  # seconds: several JVMs start, on a machine that may be busy
SETTINGS = [
    "--conf=spark.executor.memory=512m",
    "--conf=spark.log.level=ERROR",
    "--conf=spark.ui.enabled=false",
    "--conf=spark.driver.host=127.0.0.1",
    "--conf=spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "--conf=spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
]
ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1"}

STORY = """
    import program
    import dataflow.spark
    from dataflow.spark.rooms import start_session
    from tests.spark import growing

    master, folder = sys.argv[1:3]
    session = start_session(master, dict(each.removeprefix("--conf=").split("=", 1) for each in sys.argv[3:]))

    def attempt(title, *arguments, main=program.main, workers=2, **options):
        try:
            results = dataflow.spark.execute(main, *arguments, workers=workers, session=session, **options)
            print("=", title, results)
        except dataflow.DataflowError as error:
            print("!", title, type(error).__name__, error, getattr(error, "__notes__", ""))

    attempt("plain", prefix=True)
    try:
        dataflow.spark.execute(program.main, "raise", workers=2, session=session)
    except ValueError as error:
        print("! raised", error, error.__notes__, "program.py" in str(error.__cause__))
    attempt("crowded", workers=3, wait=1)
    recovery = dataflow.Recovery(f"{folder}/state", every=1000.0, restarts=2)
    attempt("replaced", "worker", f"{folder}/replaced", recovery=recovery)
    attempt("lost", "executor", f"{folder}/lost")
    attempt("found", "executor", f"{folder}/found", recovery=dataflow.Recovery(f"{folder}/other", every=1000.0))
    attempt("grown", [2, 1, 2, 3], main=growing.main, workers=1)
    recovery = dataflow.Recovery(f"{folder}/third", every=0.2)
    attempt("joined", [2], "executor", f"{folder}/joined", main=growing.main, workers=1)
    attempt("again", [2], "executor", f"{folder}/again", main=growing.main, workers=1, recovery=recovery)
    session.stop()
"""


def test_a_standalone_cluster(arena: Arena, standalone: str) -> None:
    arena.write("program.py", PROGRAM)
    arguments = [standalone, str(arena.folder), *SETTINGS]
    ended = arena.script(STORY, *arguments, environment=ENVIRONMENT).end(LONG)
    assert ended.status == 0, f"{ended.out}\n{ended.err}"
    told = {line.split()[1]: line for line in ended.out.splitlines() if line[0] in "=!"}
    for title in ("plain", "replaced", "found"):
        assert told[title].startswith("="), f"{told}\n{ended.err}"
        require_right(ast.literal_eval(told[title].partition(title)[2].strip()))
    assert "[worker 1] life of 1" in ended.out and "[worker 0] a word of 0" in ended.err
    assert "oh no" in told["raised"] and "worker 1" in told["raised"] and told["raised"].endswith("True")
    assert "NotAsGuest 3 workers need 3 slots" in told["crowded"] and "there are 2" in told["crowded"]
    assert "worker 1 was killed by signal 9" in ended.err and ": restart 1 of 2, from the beginning" in ended.err
    assert "ExecutorLost the executor with worker 1 is gone" in told["lost"] and "recovery=" in told["lost"]
    assert "is gone" in ended.err and "restart 1 of 5, as another job with 2 workers from the last" in ended.err
    require_grown(told)


def require_grown(told: dict[str, str]) -> None:
    """Workers came and went, one too many was refused, and the executor of one that had joined was lost twice."""
    (_, went), left, (last, _) = ast.literal_eval(told["grown"].partition("grown")[2].strip())
    assert [state for state, _ in went] == ["done", "done", "done", "failed"] and (left, last) == (None, 2)
    assert "2 workers have one each, and 1 more need 1 slots" in went[3][1]
    assert "ExecutorLost the executor with worker 1 is gone" in told["joined"] and "recovery=" in told["joined"]
    assert ast.literal_eval(told["again"].partition("again")[2].strip()) == [(0, [("done", None)]), (1, [])]


def test_the_command_line_on_a_local_cluster(arena: Arena) -> None:
    program = "tests.spark.growing:from_shell"
    command = ["run", program, "2,1,2", "--workers", "1", "--on", "spark", "--master", "local-cluster[2,1,1024]"]
    settings = [each for each in SETTINGS if "executor.memory" not in each]
    state = ["--recovery", str(arena.folder / "state")]
    ended = arena.cli(*command, "--prefix", *state, *settings, environment=ENVIRONMENT).end(LONG)
    assert ended.status == 0, ended.err
    begun = {f"[worker {number}] begins: {number} {'later' if number else 'at first'}" for number in range(3)}
    assert set(ended.out.splitlines()) == {*begun, "[worker 0] went: done done done"}


def test_ctrl_c_ends_the_guests_with_their_finally_clauses(arena: Arena) -> None:
    arena.write("program.py", PROGRAM)
    command = ["run", "program:main", "stay", "--workers", "2", "--on", "spark", "--master", "local[2]", *SETTINGS]
    # Spark's own Python processes do not close their files when they are interrupted.
    running = arena.cli(*command, environment={**ENVIRONMENT, "PYTHONWARNINGS": "ignore"})
    wait_until(lambda: running.out.count("staying") == 2, "two workers that wait", LONG)
    running.interrupt()
    ended = running.end(LONG)
    assert ended.status == 130 and "dataflow: interrupted" in ended.err and "Traceback" not in ended.err, ended.err
    assert ended.out.count("finally of") == 2


def test_dynamic_allocation_is_refused(arena: Arena) -> None:
    arena.write("program.py", PROGRAM)
    dynamic = [
        "--conf=spark.dynamicAllocation.enabled=true",
        "--conf=spark.dynamicAllocation.shuffleTracking.enabled=true",
    ]
    command = ["run", "program:main", "--on", "spark", "--master", "local[1]", *dynamic, *SETTINGS]
    ended = arena.cli(*command, environment=ENVIRONMENT).end(LONG)
    assert ended.status == 1 and "SPARK-24942" in ended.message, ended.err
