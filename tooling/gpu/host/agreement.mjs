// Checks that `shoal bench` reports the same figures as nccl-tests and the NVSHMEM perftests. The programs run in turn
// on the same GPUs. This script builds nccl-tests and the perftests from their public sources, which you download
// first: SHOAL_NCCL_TESTS is the path of the sources of nccl-tests, SHOAL_NVSHMEM_TESTS that of the NVSHMEM sources.
// The perftests need Open MPI.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { driver } from '@shoal/cuda-sys'
import { Device } from '@shoal/driver'
import { nccl } from '@shoal/nccl-sys'
import { nvshmem } from '@shoal/nvshmem-sys'
import { atMost, greatestRatio, leasts, medians, rowsOfNcclTests, rowsOfPerftest } from './perfTables.mjs'

const rounds = 15
const mebibyte = 2 ** 20
const jsonFile = process.argv[2] === '--json' ? process.argv[3] : undefined
const cuda = process.env.CUDA_HOME || '/usr/local/cuda'
const folder = mkdtempSync(join(tmpdir(), 'shoal-agreement-'))
const environment = { ...process.env, OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' }
const { major, minor } = Device.get(0).computeCapability
const results = {}
const bars = []

for (const [compare, sources] of [
  [compareNccl, process.env.SHOAL_NCCL_TESTS],
  [compareNvshmem, process.env.SHOAL_NVSHMEM_TESTS],
]) {
  if (!sources) continue
  try {
    compare(sources)
  } catch (error) {
    // The other benchmark is still compared.
    console.error(error)
    process.exitCode = 1
  }
}
rmSync(folder, { recursive: true, force: true })
for (const { met, what, value, limit } of bars) {
  console.log(`${met ? 'met   ' : 'MISSED'} ${what}: ${value.toFixed(3)} (at most ${limit})`)
}
if (bars.length === 0) throw new Error('nothing was compared: no size that both sides have')
if (jsonFile) writeFileSync(jsonFile, JSON.stringify({ rounds, results, bars }))

function compareNccl(sources) {
  const build = join(folder, 'nccl-tests')
  // Both use the same library. A wheel has its header in the folder next to the library's.
  const library = nccl.load().path
  const home = process.env.NCCL_HOME || dirname(dirname(library))
  make(
    'make',
    [
      '-C',
      sources,
      `-j${availableParallelism()}`,
      'MPI=0',
      `BUILDDIR=${build}`,
      `CUDA_HOME=${cuda}`,
      `NCCL_HOME=${home}`,
    ].concat(`NVCC_GENCODE=-gencode=arch=compute_${major}${minor},code=sm_${major}${minor}`),
  )
  const sizes = [
    '-b',
    '8',
    '-e',
    process.env.SHOAL_DEVICE === 'sim' ? '64K' : '128M',
    '-f',
    '2',
    '-n',
    '100',
    '-w',
    '20',
  ]
  const libraries = [dirname(library), process.env.LD_LIBRARY_PATH].filter(Boolean).join(':')
  const [theirs, ours] = inTurns(
    () =>
      rowsOfNcclTests(
        run(join(build, 'all_reduce_perf'), [...sizes, '-g', String(Device.count), '-c', '1'], {
          LD_LIBRARY_PATH: libraries,
        }),
      ),
    () =>
      shoalBench('all-reduce', sizes).rows.map((row) => {
        if ((row.outOfPlace.wrong ?? 0) + (row.inPlace.wrong ?? 0) > 0)
          throw new Error('shoal bench found wrong results')
        return { bytes: row.bytes, outOfPlace: row.outOfPlace.microseconds, inPlace: row.inPlace.microseconds }
      }),
  )
  results.nccl = { theirs, ours }
  for (const place of ['outOfPlace', 'inPlace']) {
    const pick = (row) => row[place]
    const [own, other] = [medians(ours, pick), medians(theirs, pick)]
    const words = place === 'inPlace' ? 'in place' : 'out of place'
    const isSmall = (bytes) => bytes <= 4096
    const small = greatestRatio(own, other, isSmall)
    // If the host's processors differ, small operations have two speeds, and each median may come from another speed.
    // The least times can be compared even then.
    const best = greatestRatio(leasts(ours, pick), leasts(theirs, pick), isSmall)
    if (best !== undefined) console.log(`all-reduce of 8 B to 4 KiB, ${words}, quickest turns: ${best.toFixed(3)}`)
    const large = greatestRatio(own, other, (bytes) => bytes >= 16 * mebibyte)
    const larger = greatestRatio(other, own, (bytes) => bytes >= 16 * mebibyte)
    bars.push(...atMost(`all-reduce of 8 B to 4 KiB, ${words}, time against nccl-tests`, small, 1.1))
    bars.push(...atMost(`all-reduce from 16 MiB, ${words}, time against nccl-tests`, large, 1.01))
    bars.push(...atMost(`all-reduce from 16 MiB, ${words}, time of nccl-tests against it`, larger, 1.01))
  }
}

function compareNvshmem(sources) {
  const library = nvshmem.load().path
  const home = process.env.NVSHMEM_PREFIX || dirname(dirname(library))
  const perftests = join(sources, 'perftest')
  const folders = [join(home, 'lib'), dirname(driver.load().path)]
  // NVSHMEM's CMake files need more than its Python wheel contains, so nvcc is called directly.
  for (const name of ['bw', 'latency']) {
    make('nvcc', [
      ...['-std=c++17', '-rdc=true', `-arch=sm_${major}${minor}`, '-DNVSHMEMTEST_MPI_SUPPORT'],
      ...[join(home, 'include'), join(perftests, 'common'), mpiHeaders()].map((path) => `-I${path}`),
      ...['-x', 'cu', join(perftests, 'common', 'utils.cu'), join(perftests, 'host', 'pt-to-pt', `${name}.cpp`)],
      ...folders.map((path) => `-L${path}`),
      ...['-Xlinker', `-l:${basename(library)}`, '-lnvshmem_device', '-Xlinker', '-l:libcuda.so.1', '-ldl'],
      ...['-o', join(folder, name)],
    ])
  }
  const libraries = [dirname(library), process.env.LD_LIBRARY_PATH].filter(Boolean).join(':')
  const perftest = (name) =>
    rowsOfPerftest(
      run('mpirun', ['--oversubscribe', '-n', '2', join(folder, name), '-b', '8', '-e', String(128 * mebibyte)], {
        LD_LIBRARY_PATH: libraries,
        NVSHMEMTEST_USE_MPI_LAUNCHER: '1',
      }),
    )
  const sizes = ['-b', '8', '-e', '128M', '-f', '2', '-n', '100']
  const [theirs, ours] = inTurns(
    () => ({ bandwidth: perftest('bw'), latency: perftest('latency') }),
    () => shoalBench('put', sizes).rows,
  )
  results.nvshmem = { theirs, ours }
  const own = medians(ours, (row) => row.bandwidth)
  const other = medians(
    theirs.map(({ bandwidth }) => bandwidth),
    (row) => row.value,
  )
  const isLarge = (bytes) => bytes >= 16 * mebibyte
  bars.push(
    ...atMost('put from 16 MiB, bandwidth of the perftests against it', greatestRatio(other, own, isLarge), 1.05),
  )
  bars.push(...atMost('put from 16 MiB, bandwidth against the perftests', greatestRatio(own, other, isLarge), 1.05))
}

/** Runs both once in every round. The one that goes first changes from round to round. */
function inTurns(their, our) {
  const [theirs, ours] = [[], []]
  for (let round = 0; round < rounds; round += 1) {
    const both = [() => theirs.push(their()), () => ours.push(our())]
    for (const one of round % 2 === 0 ? both : both.reverse()) one()
  }
  return [theirs, ours]
}

function shoalBench(test, words) {
  const file = join(folder, 'shoal.json')
  const program = fileURLToPath(new URL('../bin/shoal.js', import.meta.resolve('@shoal/cli')))
  run(process.execPath, [program, 'bench', test, ...words, '--json', file])
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Returns the folder of mpi.h. */
function mpiHeaders() {
  const { stdout } = spawnSync('mpicc', ['--showme:incdirs'], { encoding: 'utf8' })
  const folders = [process.env.MPI_HOME && join(process.env.MPI_HOME, 'include'), ...(stdout ?? '').trim().split(/\s+/)]
  const found = folders.find((path) => path && existsSync(join(path, 'mpi.h')))
  if (found === undefined) throw new Error('no mpi.h: set MPI_HOME to the folder of Open MPI')
  return found
}

function make(command, words) {
  execFileSync(command, words, { env: environment, stdio: ['ignore', 'inherit', 'inherit'] })
}

function run(command, words, more = {}) {
  const result = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 1 << 26, env: { ...environment, ...more } })
  if (result.error) throw result.error
  if (result.status !== 0) {
    throw new Error(`${command} ended with ${result.status ?? result.signal}: ${result.stdout}\n${result.stderr}`)
  }
  return result.stdout
}
