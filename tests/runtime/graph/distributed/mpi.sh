#!/usr/bin/env bash
# tests/runtime/graph/distributed/mpi.sh PROCESSES SECONDS PROGRAM ARGUMENT...:
# runs the program in as many processes, which share this machine's cores; ends
# them all when the time is over. Exit code 77, with the reason, where there is
# no mpirun.
set -euo pipefail
processes=$1 seconds=$2
shift 2
if ! command -v mpirun >/dev/null; then
  echo "skipped: there is no mpirun"
  exit 77
fi
options=(-n "$processes" --oversubscribe)
if [ "$(id -u)" -eq 0 ]; then options+=(--allow-run-as-root); fi
# Between the processes of one machine, and nothing that waits by spinning.
export OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
# A folder of its own: launchers that share one remove each other's when they end,
# and what killed ones left is there.
session=$(mktemp -d)
trap 'rm -rf "$session"' EXIT
export OMPI_MCA_orte_tmpdir_base=$session
code=0
timeout --kill-after=5 "$seconds" mpirun "${options[@]}" "$@" || code=$?
# It ends before those that it killed, which hold files and locks while the disk
# has not written what they synced.
for _ in $(seq 200); do
  env -u OMPI_MCA_orte_tmpdir_base grep -qsz \
    "^OMPI_MCA_orte_tmpdir_base=$session\$" /proc/[0-9]*/environ || break
  sleep 0.1
done
if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
  echo "it was not over after $seconds s"
fi
exit "$code"
