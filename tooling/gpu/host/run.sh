#!/usr/bin/env bash
# Runs Shoal's jobs on a GPU host without a network: run.sh FOLDER [--software] [JOB …]
# FOLDER gets results.json and log.txt. Without a job: all of them. --software tries the jobs on the
# software device, where no GPU is.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 1 ]; then
  echo "usage: run.sh FOLDER [--software] [JOB …]" >&2
  exit 2
fi
node=$here/node
if [ ! -x "$node" ]; then
  if command -v xz >/dev/null; then
    xz -dc "$here/node.xz" >"$node.part"
  else
    python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$here/node.xz" >"$node.part"
  fi || { echo "node.xz cannot be unpacked: neither xz nor python3 did it" >&2; exit 1; }
  chmod +x "$node.part" && mv "$node.part" "$node" || exit 1
fi
exec "$node" "$here/app/main.mjs" "$@"
