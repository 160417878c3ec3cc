# The commands of everyday work (https://just.systems). Each is one line; copy it where there is no `just`.

python := ".venv/bin/python"

# List the commands.
default:
    @just --list

# Make the development environment.
setup:
    python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]'

# Tests that answer within half a minute.
quick:
    {{python}} -m pytest -n 2 tests/structure tests/books/ledger tests/books/bank_files tests/primitives/registry tests/workspace/settings tests/cards

# The suite, in which slow tests take turns; or what guards a room: just test books/ledger
test room="":
    {{python}} -m pytest -n 6 {{ if room == "" { "" } else { "--room " + room } }}

# All tests.
test-all:
    {{python}} -m pytest -n 6 --all

# Style, types, layers.
check:
    .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports

# Make the generated reference pages again.
docs:
    {{python}} -m docs.generate

# Measure.
bench *options:
    {{python}} -m bench {{options}}
