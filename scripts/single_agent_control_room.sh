#!/bin/sh
# The loop in the foreground, with its rotation. Bounded and placed by the SINGLE_AGENT_* variables; sources nothing.
set -eu
exec cleared loop run --loop --auto-rotate "$@"
