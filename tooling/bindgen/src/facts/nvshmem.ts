import type { History } from '../spec/history.js'
import type { Direction } from '../spec/types.js'

/** Names for parameters that are unnamed in the header. */
export const parameterNames: Readonly<Record<string, readonly string[]>> = {
  nvshmem_calloc: ['count', 'size'],
  nvshmem_align: ['alignment', 'size'],
  nvshmemx_barrier_all_on_stream: ['stream'],
  nvshmemx_sync_all_on_stream: ['stream'],
}

/** Symbols that the library exports but no header declares, and their nature. */
export const undeclared: Readonly<Record<string, string>> = {
  nvshmem_debug_file: 'a variable of the library: the FILE that debug output goes to',
  nvshmem_debug_level: 'a variable of the library: the level of debug output, set from NVSHMEM_DEBUG',
  nvshmem_debug_mask: 'a variable of the library: the subsystems of debug output, set from NVSHMEM_DEBUG_SUBSYS',
  nvshmem_debug_output_lock: 'a variable of the library: the mutex around debug output',
  nvshmem_nvtx_options: 'a variable of the library: which calls are marked for the profiler, set from NVSHMEM_NVTX',
  nvshmem_options: 'a variable of the library that no header describes',
  nvshmem_debug_log: 'the printf-like logger that the library and its plugins share; in no header, variadic',
}

/** The reasons why the library does not export some declarations for the host. */
export const unexported: readonly [RegExp, string][] = [
  [
    /^nvshmem_(init|init_thread|finalize)$|^nvshmemx_init_attr$/,
    'inline in the header, on top of the static device library; nvshmemx_hostlib_init_attr and nvshmemx_hostlib_finalize take its place',
  ],
  [/^nvshmemi_(init_thread|finalize)$/, 'in the static device library, which a shared library cannot bring'],
  [/^nvshmemi_collective_launch/, 'declared under a name that no library of the release defines'],
  [/_(warp|block)$/, 'for device code, though the header gives it the prefix of host functions'],
  [/^nvshmemx_signal_op$/, 'for device code, though the header gives it the prefix of host functions'],
  [/^nvshmem_(realloc|\{type\}_alltoalls)$/, 'declared, but defined in no library of the release'],
]

/** Directions of pointers without `const`. The first pattern that matches `function.parameter` applies. */
const directions: readonly [RegExp, Direction][] = [
  [/_atomic_set\.dest$/, 'out'],
  [/_atomic_\w+\.dest$/, 'inout'],
  [/\.dest$/, 'out'],
  [/(_wait_until\w*|nvshmem_signal_fetch)\.sig_addr$/, 'in'],
  [/\.sig_addr$/, 'inout'],
  [/\.(ivars?|cmp_values?)$/, 'in'],
  [/\.(ptr|addr|buf_ptr|mmap_ptr|mpi_comm|\w*device_ctx)$/, 'in'],
  [/^nvshmemx_team_init\.config$/, 'in'],
  [/^nvshmem_team_get_config\.config$/, 'inout'],
  [/\.(attr|nvshmem_attr)$/, 'inout'],
  [/\.(provided|major|minor|patch|name|uniqueid|team|new_team|[xy]axis_team)$/, 'out'],
]

export function nvshmemDirection(functionName: string, parameter: string, history: History): Direction {
  const direction = directions.find(([pattern]) => pattern.test(`${functionName}.${parameter}`))?.[1]
  const problem = `${functionName}: no rule in facts/nvshmem.ts tells whether ${parameter} is read or written`
  return direction ?? history.guess(functionName, problem, 'inout')
}

/** The page of each function in NVSHMEM's manual, because the header has no groups. */
const pages: readonly [RegExp, string][] = [
  [/^nvshmemid_/, ''],
  [/_atomic_/, 'amo'],
  [/signal/, 'signal'],
  [/_wait_until/, 'sync'],
  [/_(fence|quiet)/, 'ordering'],
  [/_(barrier|sync|team_sync|alltoall|broadcast|fcollect)|_(reduce|reducescatter)(_|$)/, 'collectives'],
  [/_team_/, 'teams'],
  [/_(malloc|calloc|align|free|buffer_\w+)$/, 'memory'],
  [/_i?(put|get)|_[pg](_on_stream)?$/, 'rma'],
  [/./, 'setup'],
]

export function nvshmemPage(name: string): string {
  const plain = /^nvshmemx?_(info_get|vendor_get|get_uniqueid)/.test(name) ? 'setup' : undefined
  return plain ?? (pages.find(([pattern]) => pattern.test(name)) as [RegExp, string])[1]
}
