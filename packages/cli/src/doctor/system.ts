import { accessSync, constants, readFileSync, statfsSync } from 'node:fs'
import { availableParallelism, release } from 'node:os'
import { delimiter, join } from 'node:path'
import type { SystemReport } from './report.js'

export function examineSystem(): SystemReport {
  const kernelModule = readKernelModule()
  const sharedMemoryBytes = readSharedMemory()
  return {
    node: process.version,
    platform: `${process.platform}-${process.arch}, ${libraryOfC()}kernel ${release()}`,
    cpus: availableParallelism(),
    ...(kernelModule === undefined ? {} : { kernelModule }),
    ...(sharedMemoryBytes === undefined ? {} : { sharedMemoryBytes }),
    environment: relevantEnvironment(),
    launchers: installedLaunchers(),
  }
}

function libraryOfC(): string {
  const { header } = process.report.getReport() as { readonly header?: { readonly glibcVersionRuntime?: string } }
  return header?.glibcVersionRuntime === undefined ? '' : `glibc ${header.glibcVersionRuntime}, `
}

function readKernelModule(): string | undefined {
  try {
    return /\s(\d+\.\d+(?:\.\d+)?)\s/.exec(readFileSync('/proc/driver/nvidia/version', 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

function readSharedMemory(): number | undefined {
  try {
    const { bsize, blocks } = statfsSync('/dev/shm')
    return bsize * blocks
  } catch {
    return undefined
  }
}

function relevantEnvironment(): Record<string, string> {
  const names = Object.keys(process.env).filter(
    (name) => /^(?:SHOAL|CUDA|NVIDIA|NCCL|NVSHMEM)_/.test(name) && !/SECRET|TOKEN|KEY|PASSWORD/.test(name),
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
    return true
  } catch {
    return false
  }
}
