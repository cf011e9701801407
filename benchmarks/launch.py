"""Run a command and tell how long it took and how much memory it had at its peak. Standard library alone.

    launch.py SECONDS COMMAND …

A process inherits its parent's peak until it has a greater one, so the parent must be as small as this.
"""

import json
import os
import resource
import signal
import sys
import time


def main() -> None:
    limit, *command = sys.argv[1:]
    out = os.dup(1)
    os.dup2(2, 1)
    start = time.perf_counter_ns()
    child = os.posix_spawn(command[0], command, os.environ)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(int(limit))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    spent = time.perf_counter_ns() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    os.write(out, json.dumps({"code": code, "spent": spent, "peak": peak}).encode())


if __name__ == "__main__":
    main()
