import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type LibraryReport, probe, probeAddon } from '@shoal/ffi'
import { examineDevices } from './devices.js'
import { type LibraryName, librariesByName, optional, variables } from './libraries.gen.js'
import type { DoctorReport, Finding, SystemReport } from './report.js'
import { examineSystem } from './system.js'

/**
 * Least shared memory in bytes: NCCL and NVSHMEM fail below it on machines with several GPUs.
 *
 * Containers have 64 MiB by default.
 */
const enoughSharedMemory = 2 ** 30

/**
 * Examines the whole system. Never throws.
 *
 * @param required - libraries whose absence is an error instead of a warning
 */
export function examine(required: readonly LibraryName[]): DoctorReport {
  const { system, findings } = examineSystem()
  const addon = probeAddon()
  const names = Object.keys(librariesByName) as LibraryName[]
  const libraries = addon.loaded ? probe(names.map((name) => librariesByName[name])) : []
  const found = (name: LibraryName): LibraryReport | undefined => {
    const report = libraries[names.indexOf(name)]
    return report?.found === true ? report : undefined
  }
  if (!addon.loaded) {
    findings.push({ level: 'error', subject: 'addon', message: addon.error ?? 'it does not load', remedies: [] })
  }
  for (const [index, report] of libraries.entries()) {
    findings.push(...libraryFindings(names[index] as LibraryName, report, required))
  }
  const {
    devices,
    links,
    findings: deviceFindings,
  } = found('driver') === undefined ? { devices: [], links: [], findings: [] } : examineDevices()
  findings.push(...deviceFindings)
  findings.push(...versionFindings(found('driver'), found('runtime')))
  if (devices.some((device) => device.isSoftware)) {
    findings.push({
      level: 'note',
      subject: 'devices',
      message: 'these are software devices: this CPU does the work, so timings say nothing about a GPU',
      remedies: ['unset SHOAL_DEVICE to use GPUs'],
    })
  }
  const { plugins: nvshmemPlugins, findings: pluginFindings } = examinePlugins(found('nvshmem'))
  findings.push(...pluginFindings)
  findings.push(...sharedMemoryFindings(system, devices.length))
  // Errors first, then warnings, then notes.
  const bySeverity = ['error', 'warning', 'note'].flatMap((level) => findings.filter((one) => one.level === level))
  return { system, addon, libraries, nvshmemPlugins, devices, links, findings: bySeverity }
}

function libraryFindings(name: LibraryName, report: LibraryReport, required: readonly LibraryName[]): Finding[] {
  const isRequired = name === 'driver' || required.includes(name)
  const level = isRequired ? 'error' : optional.has(name) ? 'note' : 'warning'
  if (report.found) {
    if (report.error === undefined) return []
    return [{ level, subject: report.title, message: `reading its version failed: ${report.error}`, remedies: [] }]
  }
  const named = report.attempts.find(({ step }) => step === 'environment' || step === 'option')
  const why = named === undefined ? 'not found' : `${named.candidate} does not load: ${named.outcome.trim()}`
  const variable = variables[name]
  const correction = `unset ${variable}, so that the library is searched for, or name the right file in it`
  return [
    {
      level,
      subject: report.title,
      message: isRequired ? why : `${why}; packages that need it cannot run`,
      remedies: [...(named?.step === 'environment' ? [correction] : []), ...remediesIn(report.error ?? '')],
    },
  ]
}

/** Extracts the hints, which a search error lists below its attempts. */
function remediesIn(error: string): string[] {
  const ways = error.split('\n').filter((line) => line.startsWith('  - '))
  return ways.map((line) => line.slice(4))
}

function versionFindings(driverReport: LibraryReport | undefined, runtimeReport: LibraryReport | undefined): Finding[] {
  const driverMajor = majorOf(driverReport)
  const runtimeMajor = majorOf(runtimeReport)
  if (driverMajor === undefined || runtimeMajor === undefined || runtimeMajor <= driverMajor) return []
  return [
    {
      level: 'error',
      subject: runtimeReport?.title ?? '',
      message: `it is for CUDA ${runtimeReport?.version}, but the driver supports at most CUDA ${driverReport?.version}`,
      remedies: [`install a newer driver, or a runtime of CUDA ${driverMajor} and name it in SHOAL_CUDART_LIBRARY`],
    },
  ]
}

function majorOf(report: LibraryReport | undefined): number | undefined {
  const major = Number(report?.version?.split('.')[0])
  return Number.isInteger(major) ? major : undefined
}

function sharedMemoryFindings({ sharedMemoryBytes }: SystemReport, deviceCount: number): Finding[] {
  const bytes = sharedMemoryBytes ?? 0
  if (process.platform !== 'linux' || bytes >= enoughSharedMemory || deviceCount < 2) return []
  const found = sharedMemoryBytes === undefined ? 'does not exist' : `has ${Math.round(bytes / 2 ** 20)} MiB`
  return [
    {
      level: 'warning',
      subject: 'shared memory',
      message: `/dev/shm ${found}; ranks that exchange data through it may not start`,
      remedies: ['start a container with --shm-size=1g or more, or with --ipc=host'],
    },
  ]
}

/** Lists the plugins that NVSHMEM loads itself; the software device needs none. */
function examinePlugins(library: LibraryReport | undefined): { plugins: string[]; findings: Finding[] } {
  if (library?.path === undefined || library.step === 'sim') return { plugins: [], findings: [] }
  const warning = (message: string, remedy: string): Finding => ({
    level: 'warning',
    subject: library.title,
    message,
    remedies: [remedy],
  })
  let names: string[]
  try {
    names = readdirSync(dirname(library.path))
  } catch (error) {
    // A library can be loaded from a folder that cannot be listed.
    const message = `the folder of its plugins cannot be read: ${(error as Error).message}`
    return { plugins: [], findings: [warning(message, 'let this user read the folder')] }
  }
  const plugins = names.filter((name) => /^nvshmem_(?:bootstrap|transport)_.*\.so/.test(name)).sort()
  if (plugins.some((name) => name.includes('_uid'))) return { plugins, findings: [] }
  const message = 'its plugin nvshmem_bootstrap_uid is not next to it, so it cannot start with a unique id'
  return { plugins, findings: [warning(message, 'install the complete package or wheel')] }
}
