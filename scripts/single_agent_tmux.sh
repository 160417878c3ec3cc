#!/bin/sh
# The loop in a tmux session of its own: start, status, tail, stop. Sources nothing.
set -eu
SINGLE_AGENT_TMUX_SESSION=${SINGLE_AGENT_TMUX_SESSION:-top1_single_agent}
export SINGLE_AGENT_TMUX_SESSION
command=${1:-}
[ $# -eq 0 ] || shift
case $command in
start) exec cleared loop start --auto-rotate "$@" ;;
status | tail | stop) exec cleared loop "$command" "$@" ;;
*)
  echo "usage: $0 start|status|tail|stop" >&2
  exit 2
  ;;
esac
