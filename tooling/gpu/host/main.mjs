// Runs jobs one after another, each with its time limit. Writes results.json after each job, so a run that is stopped
// keeps its results.
import { spawn, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hostFacts } from './facts.mjs'
import { groups, jobs } from './jobs.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const [folder, ...wanted] = process.argv.slice(2)
const software = wanted.includes('--software')
const packedNccl = wanted.includes('--packed-nccl')
const names = wanted.filter((name) => !name.startsWith('--')).flatMap((name) => groups[name] ?? [name])
const options = wanted.filter((word) => word.startsWith('--'))
const unknown = [
  ...names.filter((name) => !jobs.some((job) => job.name === name)),
  ...options.filter((option) => option !== '--software' && option !== '--packed-nccl'),
]
if (unknown.length > 0) {
  process.stderr.write(
    `unknown job: ${unknown.join(', ')}; there are ${jobs.map(({ name }) => name).join(', ')}, bench, all\n`,
  )
  process.exit(2)
}
const chosen = jobs.filter(({ name }) => (names.length === 0 ? groups.all : names).includes(name))

mkdirSync(folder, { recursive: true })
const log = join(folder, 'log.txt')
const results = join(folder, 'results.json')
writeFileSync(log, '')
const environment = jobEnvironment()
makeKernels()

const report = {
  started: new Date().toISOString(),
  software,
  about: JSON.parse(readFileSync(join(here, 'about.json'), 'utf8')),
  host: hostFacts(),
  libraries: libraries(),
  jobs: [],
}
// A job that is left running would disturb the next job's figures.
let running
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
]) {
  process.on(signal, () => {
    if (running) process.kill(-running.pid, 'SIGKILL')
    process.exit(128 + number)
  })
}
const gpus = software ? 2 : report.host.gpus.length
for (const job of chosen) {
  report.jobs.push(await runJob(job))
  writeFileSync(results, `${JSON.stringify(report, null, 2)}\n`)
}

process.stdout.write('\n')
for (const { name, status, seconds, reason } of report.jobs) {
  process.stdout.write(`${status.padEnd(7)} ${name} (${seconds.toFixed(1)} s)${reason ? `: ${reason}` : ''}\n`)
}
process.exitCode = report.jobs.some(({ status }) => status === 'failed' || status === 'missed') ? 1 : 0

function jobEnvironment() {
  const { SHOAL_DEVICE: _, ...inherited } = process.env
  const common = {
    ...inherited,
    // NVLink multicast can make a shared host unusable.
    NCCL_NVLS_ENABLE: '0',
    NVSHMEM_DISABLE_NVLS: '1',
    ...(packedNccl ? { SHOAL_NCCL_LIBRARY: join(here, '..', 'libnccl.so.2') } : {}),
  }
  // A GPU test must fail if it finds no GPU.
  return software
    ? { ...common, SHOAL_DEVICE: 'sim' }
    : { ...common, SHOAL_EXPECT_GPU: '1', SHOAL_KERNELS: join(here, 'kernels') }
}

function say(text) {
  process.stdout.write(text)
  appendFileSync(log, text)
}

async function runJob({ name, limit, gpus: needed = 1, kernels = false, variables, command }) {
  if (gpus < needed) {
    return { name, status: 'not run', seconds: 0, reason: `needs ${needed} GPUs, this host has ${gpus}` }
  }
  if (kernels && software) {
    return { name, status: 'not run', seconds: 0, reason: 'its kernels are compiled for a GPU' }
  }
  if (variables?.every((variable) => !process.env[variable])) {
    return { name, status: 'not run', seconds: 0, reason: `names no sources: ${variables.join(' or ')}` }
  }
  const scratch = mkdtempSync(join(tmpdir(), 'shoal-job-'))
  const json = join(scratch, 'figures.json')
  say(`\n── ${name}\n`)
  const started = performance.now()
  const { code, signal, timedOut, output } = await spawnLimited(command({ gpus, json, software }), limit)
  const seconds = (performance.now() - started) / 1000
  const data = existsSync(json) ? JSON.parse(readFileSync(json, 'utf8')) : undefined
  const missed = (data?.bars ?? []).filter(({ met }) => !met).length
  const status = code !== 0 ? 'failed' : missed > 0 ? 'missed' : 'passed'
  const reason = timedOut
    ? `stopped after ${limit} s`
    : signal
      ? `killed by ${signal}`
      : code !== 0
        ? `exit status ${code}`
        : missed > 0
          ? `${missed} of ${data.bars.length} limits`
          : undefined
  rmSync(scratch, { recursive: true, force: true })
  return { name, status, seconds, reason, output: output.slice(-20_000), data }
}

/** Runs Node in a process group of its own, so that killing a job that hangs also kills its children. */
function spawnLimited(nodeArguments, limit) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, nodeArguments, {
      env: environment,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    running = child
    let output = ''
    let timedOut = false
    const keep = (chunk) => {
      output += chunk
      say(String(chunk))
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const timer = setTimeout(() => {
      timedOut = true
      process.kill(-child.pid, 'SIGKILL')
    }, limit * 1000)
    child.on('close', (code, signal) => {
      running = undefined
      clearTimeout(timer)
      resolve({ code, signal, timedOut, output })
    })
  })
}

function libraries() {
  const result = spawnSync(process.execPath, [join(here, 'libraries.mjs')], { env: environment, encoding: 'utf8' })
  if (result.status !== 0) {
    say(`the libraries cannot be listed:\n${result.stderr}\n`)
    return null
  }
  return JSON.parse(result.stdout)
}

/** Compiles the kernels that the packing machine could not compile. */
function makeKernels() {
  const sources = readdirSync(join(here, 'kernels')).filter((file) => file.endsWith('.cu'))
  for (const name of sources.map((file) => file.slice(0, -'.cu'.length))) {
    const base = join(here, 'kernels', name)
    if (existsSync(`${base}.ptx`)) continue
    for (const compile of [
      ['-ptx', '-arch=compute_75', '-o', `${base}.ptx`],
      ['-cubin', '-arch=sm_90', '-o', `${base}.sm_90.cubin`],
    ]) {
      const result = spawnSync('nvcc', [...compile, `${base}.cu`], { encoding: 'utf8' })
      if (result.status !== 0) say(`nvcc cannot build ${name}: ${result.error?.message ?? result.stderr}\n`)
    }
  }
}
