// Makes the data files of docs/hardware/results from a host's results, and reads them for the pages.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { readJson, root, SetupError } from '../../setup/workspace.mjs'
import { digestOf } from './digest.mjs'

export const resultsFolder = join(root, 'docs', 'hardware', 'results')

/** Makes the record that is kept from the results.json of a run. */
export function recordOf(report) {
  if (report.software) throw new SetupError('This run was on the software device; only runs on GPUs are kept.')
  const { host, about } = report
  if (host.gpus.length === 0) throw new SetupError('This run found no GPU; there is nothing to keep.')
  const models = new Set(host.gpus.map(({ name }) => name))
  if (models.size > 1) throw new SetupError(`The host has different GPUs: ${[...models].join(', ')}.`)
  return withoutPaths({
    started: report.started,
    gpu: host.gpus[0].name,
    gpuCount: host.gpus.length,
    memory: host.gpus[0].memory,
    computeCapability: host.gpus[0].computeCapability,
    driver: host.gpus[0].driver,
    toolkit: host.toolkit,
    topology: host.topology,
    kernel: host.kernel,
    processor: host.processor,
    cores: host.cores,
    node: host.node,
    pythonPackages: host.pythonPackages,
    libraries: (report.libraries ?? []).map(({ id, path, version }) => ({ id, file: path && basename(path), version })),
    commit: about.commit,
    modified: about.modified,
    jobs: report.jobs.map(jobRecord),
  })
}

function jobRecord(job) {
  const { name, status, seconds, reason } = job
  return { name, status, seconds: Math.round(seconds * 10) / 10, reason, ...digestOf(job) }
}

/**
 * Merges a record into the file of its setting: the kind and number of GPUs, and the NCCL. The newest result of each
 * job is kept, and a job that did not run never replaces one that ran. Returns the file.
 */
export function keepRecord({ started, commit, modified, jobs, ...facts }, folder = resultsFolder) {
  mkdirSync(folder, { recursive: true })
  const nccl = facts.libraries.find(({ id }) => id === 'nccl')?.version ?? 'none'
  const gpu = facts.gpu.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  const file = join(folder, `${gpu}x${facts.gpuCount}-nccl-${nccl}.json`)
  const known = existsSync(file) ? readJson(file) : { jobs: [] }
  const isNewest = known.jobs.every((job) => job.started <= started)
  const kept = new Map(known.jobs.map((job) => [job.name, job]))
  for (const { name, ...result } of jobs) {
    const before = kept.get(name)
    const isBetter = before === undefined || before.status === 'not run' || result.status !== 'not run'
    if (isBetter && !(before?.started > started)) kept.set(name, { name, started, commit, modified, ...result })
  }
  const merged = [...kept.values()].sort((one, other) => one.name.localeCompare(other.name))
  writeFileSync(file, `${format({ ...(isNewest ? facts : known), jobs: merged })}\n`)
  return file
}

/** Formats JSON with one line for each part that fits into 400 characters. */
function format(value, indent = '') {
  const short = JSON.stringify(value)
  if (value === null || typeof value !== 'object' || short.length <= 400) return short
  const inner = `${indent}  `
  const parts = Array.isArray(value)
    ? value.map((one) => inner + format(one, inner))
    : Object.entries(value)
        .filter(([, one]) => one !== undefined)
        .map(([key, one]) => `${inner}${JSON.stringify(key)}: ${format(one, inner)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${parts.join(',\n')}\n${indent}${close}`
}

/** Returns all settings, sorted by GPU, number of GPUs and NCCL. */
export function readSettings(folder = resultsFolder) {
  if (!existsSync(folder)) return []
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  return files
    .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }))
    .map((file) => readJson(join(folder, file)))
}

/** Removes the serials of GPUs and shortens each path to its last name, because neither may be published. */
function withoutPaths(value) {
  if (typeof value === 'string')
    return value
      .replace(/\bGPU-[0-9a-f-]{36}\b/g, 'GPU-…')
      .replace(/(?<![\w.:/])\/(?:[\w.@+-]+\/)+([\w.@+-]*)/g, '…/$1')
  if (Array.isArray(value)) return value.map(withoutPaths)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutPaths(inner)]))
}
