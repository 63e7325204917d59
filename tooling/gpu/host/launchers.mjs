// Tests ranks that other launchers start: mpirun and torchrun of this host, with NCCL and with NVSHMEM.
import { spawn, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const [ranks = '2'] = process.argv.slice(2)
const file = (path) => fileURLToPath(new URL(path, import.meta.url))
const example = (name) => file(`node_modules/@shoal/example-${name}/dist/main.js`)
const launchers = {
  mpirun: ['--oversubscribe', '-n', ranks, process.execPath],
  torchrun: ['--no-python', '--standalone', '--nproc-per-node', ranks, process.execPath],
}
const programs = {
  'NCCL, unique id': { script: example('data-parallel-training'), said: /parameters of 0 ranks differ/g, times: 1 },
  'NVSHMEM, unique id': { script: example('nvshmem-ring'), said: /around the ring, 0 wrong/g, times: Number(ranks) },
  'NVSHMEM, bootstrap by MPI': {
    script: file('nvshmemByMpi.mjs'),
    said: /from the PE to the left, right/g,
    times: Number(ranks),
    only: 'mpirun',
  },
}
const environment = {
  ...process.env,
  // mpirun refuses to run as root without these.
  OMPI_ALLOW_RUN_AS_ROOT: '1',
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
}

let failed = 0
for (const [launcher, words] of Object.entries(launchers)) {
  const version = spawnSync(launcher, [launcher === 'mpirun' ? '--version' : '--help'], { encoding: 'utf8' })
  if (version.error) {
    console.log(`FAILED  ${launcher}: ${version.error.message}`)
    failed += 1
    continue
  }
  if (launcher === 'mpirun') console.log(version.stdout.split('\n')[0])
  for (const [title, { script, said, times, only = launcher }] of Object.entries(programs)) {
    if (only !== launcher) continue
    const { code, output } = await run(launcher, [...words, script])
    const isRight = code === 0 && (output.match(said)?.length ?? 0) === times
    console.log(`${isRight ? 'passed' : 'FAILED'}  ${launcher} -n ${ranks}: ${title}`)
    if (isRight) continue
    failed += 1
    console.log(`exit status ${code}\n${output.slice(-3000)}`)
  }
}
process.exitCode = failed === 0 ? 0 : 1

function run(command, words) {
  return new Promise((resolve) => {
    const child = spawn(command, words, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
    child.once('close', (code, signal) => resolve({ code: code ?? signal, output }))
  })
}
