import { nvshmem } from '@shoal/nvshmem-sys'

/** The variables that the package looks at. */
const names = [
  'NVSHMEM_CUMEM_GRANULARITY',
  'NVSHMEM_DISABLE_CUDA_VMM',
  'NVSHMEM_HEAP_KIND',
  'NVSHMEM_MAX_MEMORY_PER_GPU',
  'NVSHMEM_REDUCE_SCRATCH_SIZE',
  'NVSHMEM_SYMMETRIC_SIZE',
] as const

/** Variables by their names, as they are in the process. */
export type Environment = { readonly [Name in (typeof names)[number]]?: string | undefined }

let seen: Environment | undefined

/**
 * The variables of the process as NVSHMEM knows them: it reads them once, in its first call, so this is asked for
 * before every call that may be the first. Throws where there is no NVSHMEM.
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
  // A worker's process.env is a copy that may differ from what C code sees.
  const getenv = nvshmem.function('getenv', { parameters: ['name: cstring'], result: 'cstring' })
  return (name) => getenv(name) ?? undefined
}
