import { nvshmem } from '@shoal/nvshmem-sys'

/** The variables that this package reads. */
const names = [
  'NVSHMEM_CUMEM_GRANULARITY',
  'NVSHMEM_DISABLE_CUDA_VMM',
  'NVSHMEM_HEAP_KIND',
  'NVSHMEM_MAX_MEMORY_PER_GPU',
  'NVSHMEM_REDUCE_SCRATCH_SIZE',
  'NVSHMEM_SYMMETRIC_SIZE',
] as const

/** Values of these variables, by name. */
export type Environment = { readonly [Name in (typeof names)[number]]?: string | undefined }

let seen: Environment | undefined

/**
 * Returns the variables as NVSHMEM sees them. Throws if NVSHMEM is missing.
 *
 * NVSHMEM reads them once in its first call, so call this before every call that may be the first.
 */
export function environmentOfNvshmem(): Environment {
  if (seen === undefined) {
    const read = variableReader()
    seen = Object.fromEntries(names.map((name) => [name, read(name)]))
  }
  return seen
}

function variableReader(): (name: string) => string | undefined {
  if (process.getBuiltinModule('node:worker_threads').isMainThread) return (name) => process.env[name]
  // A worker's process.env is a copy, which may differ from the environment that C code sees.
  const getenv = nvshmem.function('getenv', { parameters: ['name: cstring'], result: 'cstring' })
  return (name) => getenv(name) ?? undefined
}
