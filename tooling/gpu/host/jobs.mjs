// The jobs of a GPU host. `command({ gpus, json, software })` returns the arguments of Node. The job writes its figures
// to `json`.
import { fileURLToPath } from 'node:url'

const file = (path) => fileURLToPath(new URL(path, import.meta.url))
const bench =
  (command, ...options) =>
  ({ json, software }) => [
    file('node_modules/@shoal/bench/dist/main.js'),
    command,
    ...options,
    '--json',
    json,
    ...(software ? ['--device', 'sim'] : []),
  ]
const sweep =
  (job, ...options) =>
  ({ json }) => [
    file('node_modules/@shoal/sweep/dist/run.js'),
    job,
    ...['--spec', file('spec'), '--kernels', file('kernels'), '--json', json, ...options],
  ]
const onRanks =
  (name, program) =>
  ({ gpus }) => [file('node_modules/@shoal/cli/bin/shoal.js'), ...['run', '-n', String(gpus), example(name, program)]]
const example = (name, program = 'main') => file(`node_modules/@shoal/example-${name}/dist/${program}.js`)
const shoalBench =
  (...words) =>
  ({ json, software }) => [
    file('node_modules/@shoal/cli/bin/shoal.js'),
    'bench',
    ...words,
    ...['--json', json],
    ...(software ? ['--device', 'sim'] : []),
  ]
const demo = example('all-reduce')

const conformance =
  (...which) =>
  ({ json }) => [file('node_modules/@shoal/conformance/dist/run.js'), '--json', json, ...which]

/**
 * The jobs, in the order in which they run. `limit` is in seconds. A job with `kernels` does not run on the software
 * device, because its kernels are compiled for a GPU. A job with `variables` needs at least one of them set.
 */
export const jobs = [
  {
    name: 'doctor',
    limit: 60,
    command: () => [
      file('node_modules/@shoal/cli/bin/shoal.js'),
      ...['doctor', '--verbose', '--require', 'driver,runtime,nccl,nvshmem'],
    ],
  },
  {
    name: 'conformance',
    limit: 300,
    command: conformance('--without', 'nvshmem', '--without', 'nccl matrix'),
  },
  // The remaining NCCL cases, for a run with another NCCL.
  {
    name: 'conformance-communicators',
    limit: 200,
    inGroups: false,
    command: conformance('--filter', 'nccl', '--without', 'nccl matrix'),
  },
  { name: 'conformance-nccl', limit: 900, command: conformance('--filter', 'nccl matrix') },
  { name: 'conformance-nvshmem', limit: 600, command: conformance('--filter', 'nvshmem') },
  // One list of cases, run by a C++ program that is built on the host, and by the safe packages.
  {
    name: 'reference-values',
    limit: 180,
    command: ({ json }) => [file('node_modules/@shoal/conformance/dist/reference/run.js'), '--json', json],
  },
  // The corpus of kernels, compared with references bit for bit.
  {
    name: 'kernels',
    limit: 180,
    command: ({ json }) => [file('node_modules/@shoal/kernels/dist/run.js'), '--json', json],
  },
  // Each instruction, with thousands of operands.
  { name: 'instructions', limit: 900, command: ({ json }) => [file('instructions.mjs'), '--json', json] },
  // Takes many times as long as the suites alone.
  {
    name: 'sanitizer',
    limit: 1500,
    kernels: true,
    inGroups: false,
    command: ({ json }) => [file('sanitizer.mjs'), '--json', json],
  },
  { name: 'resolve', limit: 60, command: sweep('resolve') },
  { name: 'sweep', limit: 120, command: sweep('sweep') },
  // Each question that may crash a driver runs in a process of its own.
  { name: 'corners', limit: 400, gpus: 2, command: sweep('corners', '--include', file('instructions/include')) },
  { name: 'nccl-structs', limit: 90, command: () => [file('ncclStructs.mjs')] },
  { name: 'nccl-faults', limit: 60, command: ({ json }) => [file('ncclFaults.mjs'), '--json', json] },
  // Three GPUs, because some faults that the C program shows need at least three PEs.
  { name: 'nvshmem-faults', limit: 120, gpus: 3, command: ({ json }) => [file('nvshmemFaults.mjs'), '--json', json] },
  { name: 'demo', limit: 90, command: () => [demo] },
  { name: 'demo-ranks', limit: 120, command: ({ gpus }) => [demo, '--ranks', String(gpus)] },
  { name: 'growable-tensor', limit: 60, command: () => [example('growable-tensor')] },
  { name: 'shared-memory', limit: 60, command: () => [example('shared-memory', 'parent')] },
  { name: 'shared-memory-killed', limit: 60, command: () => [example('shared-memory', 'parent'), '--kill'] },
  { name: 'shared-memory-python', limit: 60, command: () => [example('shared-memory', 'withPython')] },
  // On GPUs this example reads the attribute and the granularity, and stops.
  { name: 'multicast', limit: 60, command: () => [example('multicast')] },
  {
    name: 'python-memory',
    limit: 300,
    command: ({ json }) => [file('node_modules/@shoal/interop/dist/run.js'), '--json', json],
  },
  { name: 'node-and-python', limit: 90, gpus: 2, command: () => [example('node-and-python')] },
  { name: 'data-parallel-training', limit: 90, command: onRanks('data-parallel-training') },
  // CUDA C++ sources that NVRTC compiles on the host. `conformance` contains them too.
  { name: 'sources', limit: 120, inGroups: false, command: conformance('--filter', 'driver compile') },
  { name: 'gpt', limit: 400, command: ({ gpus, json }) => [file('gpt.mjs'), String(gpus), '--json', json] },
  {
    name: 'elastic-recovery',
    limit: 90,
    gpus: 2,
    command: ({ gpus }) => [
      file('node_modules/@shoal/cli/bin/shoal.js'),
      ...['run', '-n', String(gpus), '--on-failure', 'continue', example('elastic-recovery'), '--kill', '1@4'],
    ],
  },
  { name: 'nvshmem-ring', limit: 90, command: onRanks('nvshmem-ring') },
  { name: 'nvshmem-kernel', limit: 150, kernels: true, command: onRanks('nvshmem-ring', 'kernel') },
  { name: 'nvshmem-lost', limit: 180, gpus: 2, command: () => [file('nvshmemLost.mjs')] },
  { name: 'launchers', limit: 200, gpus: 2, command: ({ gpus }) => [file('launchers.mjs'), String(gpus)] },
  { name: 'axpy', limit: 90, kernels: true, command: ({ json }) => [file('axpy.mjs'), '--json', json] },
  // A process stays on the processor where it started, and some processors are slower, so several processes run.
  { name: 'bench-gpu', limit: 400, command: bench('gpu', '--rounds', '4', '--processes', '7') },
  { name: 'bench-graphs', limit: 200, command: bench('graphs', '--rounds', '4', '--processes', '7') },
  { name: 'bench-captured-step', limit: 150, command: bench('captured-step', '--rounds', '6', '--processes', '11') },
  { name: 'bench-compile', limit: 90, command: bench('compile', '--rounds', '9') },
  { name: 'bench-gpt', limit: 240, command: bench('gpt', '--rounds', '6') },
  { name: 'bench-costs', limit: 420, command: bench('costs', '--rounds', '2', '--processes', '5') },
  { name: 'bench-short-calls', limit: 60, command: bench('short-calls') },
  { name: 'bench-memory', limit: 300, command: bench('memory', '--rounds', '15') },
  { name: 'bench-nccl', limit: 240, gpus: 2, command: bench('nccl', '--rounds', '9') },
  { name: 'bench-nvshmem', limit: 240, gpus: 2, command: bench('nvshmem', '--rounds', '9') },
  // A part of the jobs above, for short runs.
  {
    name: 'bench-nccl-process',
    limit: 150,
    gpus: 2,
    inGroups: false,
    command: bench('nccl', '--rounds', '8', '--only', 'process'),
  },
  { name: 'bench-costs-once', limit: 150, inGroups: false, command: bench('costs', '--rounds', '2') },
  {
    name: 'bench-nvshmem-put-get',
    limit: 90,
    gpus: 2,
    inGroups: false,
    command: bench('nvshmem', '--rounds', '8', '--only', 'put-get'),
  },
  { name: 'bench-ranks', limit: 90, gpus: 2, command: bench('ranks', '--rounds', '3') },
  { name: 'bench-event-loop-ranks', limit: 60, gpus: 2, command: bench('event-loop-ranks') },
  { name: 'shoal-bench-all-reduce', limit: 60, gpus: 2, command: shoalBench('all-reduce', '-f', '8', '-n', '100') },
  {
    name: 'agreement',
    limit: 1200,
    gpus: 2,
    // The folders with the sources of other benchmarks, which the job builds.
    variables: ['SHOAL_NCCL_TESTS', 'SHOAL_NVSHMEM_TESTS'],
    command: ({ json }) => [file('agreement.mjs'), '--json', json],
  },
  { name: 'shoal-bench-put', limit: 60, gpus: 2, command: shoalBench('put', '-f', '8', '-n', '100') },
  { name: 'shoal-bench-barrier', limit: 60, gpus: 2, command: shoalBench('barrier', '-n', '1000') },
  { name: 'shoal-bench-atomic', limit: 60, gpus: 2, command: shoalBench('atomic', '-n', '1000') },
  { name: 'shoal-bench-calls', limit: 60, command: shoalBench('calls') },
  { name: 'bench-import', limit: 90, command: bench('import') },
  { name: 'bench-sys', limit: 180, command: bench('sys', '--spec', file('spec')) },
  { name: 'bench-event-loop', limit: 90, command: bench('event-loop') },
  { name: 'bench-never-blocks', limit: 120, command: bench('never-blocks') },
  { name: 'bench-stub', limit: 90, command: bench('stub') },
]

/** Names for several jobs at once. */
export const groups = {
  all: jobs.filter(({ inGroups = true }) => inGroups).map(({ name }) => name),
  bench: jobs.map(({ name }) => name).filter((name) => name.startsWith('bench-')),
}
