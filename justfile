set positional-arguments

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

# Every check, and the fast tests
check:
    ./scripts/test -m "not torture and not process" -q

# Repair what can be repaired by program
fix: _tools
    ruff format
    ruff check --fix

# Everything; arguments go to pytest
test *arguments:
    ./scripts/test "$@"

# Segue beside raw SQLite and a peer; --help lists the arguments
bench *arguments: _tools
    python -m benchmarks.store "$@"

# Pin the requirements anew; --upgrade takes the newest versions
lock *arguments:
    ./scripts/lock "$@"

_tools:
    @./scripts/venv dev
