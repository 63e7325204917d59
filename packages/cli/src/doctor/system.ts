import { accessSync, constants, readFileSync, statfsSync, statSync } from 'node:fs'
import { availableParallelism, release } from 'node:os'
import { delimiter, join } from 'node:path'
import { shoalVersion } from '../version.js'
import { examineMachine } from './machine.js'
import type { Finding, SystemReport } from './report.js'

/** Examines the system. Never throws; unreadable parts become findings. */
export function examineSystem(): { readonly system: SystemReport; readonly findings: Finding[] } {
  const findings: Finding[] = []
  const kernelModule = read('the NVIDIA kernel module', findings, readKernelModule)
  const sharedMemoryBytes = read('shared memory', findings, readSharedMemory)
  const system = {
    shoal: shoalVersion(),
    node: process.version,
    platform: `${process.platform}-${process.arch}, ${libraryOfC()}kernel ${release()}`,
    cpus: availableParallelism(),
    machine: examineMachine(),
    ...(kernelModule === undefined ? {} : { kernelModule }),
    ...(sharedMemoryBytes === undefined ? {} : { sharedMemoryBytes }),
    environment: relevantEnvironment(),
    launchers: installedLaunchers(),
  }
  return { system, findings }
}

/** Calls `reader`; undefined if the file is missing or unreadable. */
function read<T>(subject: string, findings: Finding[], reader: () => T): T | undefined {
  try {
    return reader()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTDIR') findings.push({ level: 'warning', subject, message, remedies: [] })
    return undefined
  }
}

function libraryOfC(): string {
  const { header } = process.report.getReport() as { readonly header?: { readonly glibcVersionRuntime?: string } }
  return header?.glibcVersionRuntime === undefined ? '' : `glibc ${header.glibcVersionRuntime}, `
}

function readKernelModule(): string {
  const text = readFileSync('/proc/driver/nvidia/version', 'utf8')
  return /\s(\d+\.\d+(?:\.\d+)?)\s/.exec(text)?.[1] ?? (text.split('\n')[0] as string)
}

function readSharedMemory(): number {
  const { bsize, blocks } = statfsSync('/dev/shm')
  return bsize * blocks
}

/**
 * Variables that a user can usefully change. Images set many other `NVIDIA_…` variables, such as the drivers they were
 * tested with.
 */
const actionable =
  /^(?:SHOAL|CUDA|NCCL|NVSHMEM)_|^NVIDIA_(?:VISIBLE_DEVICES|DRIVER_CAPABILITIES|IMEX_CHANNELS|TF32_OVERRIDE)$|^LD_LIBRARY_PATH$/

function relevantEnvironment(): Record<string, string> {
  const names = Object.keys(process.env).filter(
    (name) => actionable.test(name) && !/SECRET|TOKEN|KEY|PASSWORD/.test(name),
  )
  return Object.fromEntries(names.sort().map((name) => [name, process.env[name] ?? '']))
}

function installedLaunchers(): Record<string, string> {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const found: Record<string, string> = {}
  for (const program of ['mpirun', 'mpiexec.hydra', 'srun', 'torchrun']) {
    const path = folders.map((folder) => join(folder, program)).find(isExecutable)
    if (path !== undefined) found[program] = path
  }
  return found
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false // a shell continues with the next folder, whatever the reason
  }
}
