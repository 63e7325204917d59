#!/usr/bin/env bash
# Runs Shoal's jobs on a GPU host without a network: run.sh FOLDER [--software] [--packed-nccl] [JOB …]
# Writes results.json and log.txt into FOLDER. Without a JOB, runs all jobs. --software tries the jobs on the software
# device, on a host without a GPU. --packed-nccl uses the packed NCCL instead of the host's.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 1 ]; then
  echo "usage: run.sh FOLDER [--software] [--packed-nccl] [JOB …]" >&2
  exit 2
fi
# Unpacks $1.xz to $1, once.
unpack() {
  [ -e "$1" ] && return
  if command -v xz >/dev/null; then
    xz -dc "$1.xz" >"$1.part"
  else
    python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$1.xz" >"$1.part"
  fi || { echo "$1.xz cannot be unpacked: neither xz nor python3 did it" >&2; exit 1; }
  chmod +x "$1.part" && mv "$1.part" "$1" || exit 1
}
unpack "$here/node"
if [ -e "$here/libnccl.so.2.xz" ]; then unpack "$here/libnccl.so.2"; fi
if [ ! -d "$here/app" ]; then
  unpack "$here/app.tar"
  tar -C "$here" -xf "$here/app.tar" || exit 1
fi
exec "$here/node" "$here/app/main.mjs" "$@"
