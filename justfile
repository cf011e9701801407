set positional-arguments

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

# Every check, and the tests of rules, use cases, storage and the Python API on a file: within a minute
check:
    ./scripts/test -m "not torture and not process" -q tests/core tests/config tests/sessions tests/storage tests/facade tests/security tests/scenarios

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

# Search in Segue and in its peers, how fast and how well; --help lists the arguments
bench-search *arguments: _tools
    python -m benchmarks.search "$@"

# How long a person waits for the chat itself
bench-chat: _tools
    python -m benchmarks.chat

# A crowd that talks to a gateway; --help lists the arguments
bench-load *arguments: _tools
    python -m benchmarks.load "$@"

# Programs that ask a gateway while a crowd talks to it; --help lists the arguments
bench-rpc *arguments: _tools
    python -m benchmarks.rpc "$@"

# The tests that crowd, starve and kill, for longer than every change can wait; arguments go to pytest
torture *arguments: _tools
    SEGUE_TORTURE=true pytest -m torture --timeout 7200 "$@"

# Load, kills and pauses for so many minutes, and whether anything grows by it
soak minutes="30": _tools
    python tests/support/soak_loop.py "$1"

# Pin the requirements anew; --upgrade takes the newest versions
lock *arguments:
    ./scripts/lock "$@"

_tools:
    @./scripts/venv dev
