#!/usr/bin/env bash
# Records how the installed driver and NCCL answer, on a machine with at least two GPUs: record.sh FOLDER
# Needs g++ and no toolkit; SHOAL_NCCL_LIBRARY names another libnccl.so.2 than the installed one, SHOAL_NVSHMEM_LIBRARY a
# libnvshmem_host.so.3, without which NVSHMEM is not asked. Takes about two minutes: what may crash a driver is tried in a process of its own.
set -eu
cd "$(dirname "$0")/probes"
out=$1
export NCCL_NVLS_ENABLE=0
find_library() { ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'; }
cuda=$(find_library libcuda.so.1)
nccl=${SHOAL_NCCL_LIBRARY:-$(find_library libnccl.so.2)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
g++ -O1 -DSHOAL_HARDWARE -std=c++17 -pthread -I../../../native/include cuda/*.cc "$cuda" -o "$work/cuda"
g++ -O1 -std=c++17 -pthread -I../../../native/include nccl.cc "$nccl" "$cuda" -Wl,-rpath,"$(dirname "$nccl")" -o "$work/nccl"
# Those of 2.30: older libraries have not all of the functions.
if g++ -O1 -std=c++17 -pthread -I../../../native/include nccl-communicators.cc "$nccl" "$cuda" -Wl,-rpath,"$(dirname "$nccl")" -o "$work/communicators"; then
  "$work/communicators" > "$out/nccl-communicators.txt" 2> /dev/null
fi
nvshmem=${SHOAL_NVSHMEM_LIBRARY:-$(find_library libnvshmem_host.so.3)}
if [ -n "$nvshmem" ]; then
  g++ -O1 -std=c++17 -pthread -I../../../native/include nvshmem.cc "$nvshmem" "$cuda" -Wl,-rpath,"$(dirname "$nvshmem")" -o "$work/nvshmem"
  "$work/nvshmem" > "$out/nvshmem.txt" 2> /dev/null
fi
"$work/cuda" > "$out/cuda.txt" 2> "$out/cuda.values.txt" &
"$work/nccl" > "$out/nccl.txt" 2> /dev/null
wait
