import type { FunctionSpec } from '../spec/types.js'

/** Files of functions, by family. A family has up to 31 functions, which keeps each file below 1000 lines. */
const areas: readonly [RegExp, string][] = [
  [/^put_signal_nbi/, 'putSignalNonBlocking'],
  [/^put_signal/, 'putSignal'],
  [/^(put|get)_nbi/, '$1NonBlocking'],
  [/^i(put|get)/, '$1Strided'],
  [/^(put|get)(_on_stream)?$/, '$1'],
  [/^p(_on_stream)?$/, 'putElement'],
  [/^g(_on_stream)?$/, 'getElement'],
  [/^atomic_(fetch|set)$/, 'atomicFetchSet'],
  [/^atomic_(swap|compare_swap)$/, 'atomicSwap'],
  [/^atomic_(fetch_)?(add|inc)$/, 'atomicAdd'],
  [/^atomic_/, 'atomicBitwise'],
  [/^wait_until_all/, 'waitAll'],
  [/^wait_until/, 'wait'],
  [/^(and|or|xor)_(reducescatter|reduce)/, '$2Bitwise'],
  [/^(sum|prod|min|max)_(reducescatter|reduce)/, '$2_$1'],
  [/^(alltoall|broadcast|fcollect)/, '$1'],
]

/** Files of functions without a family, by page of the manual. */
const pages: Readonly<Record<string, string>> = {
  collectives: 'synchronization',
  ordering: 'synchronization',
  signal: 'signal',
  teams: 'team',
  memory: 'memory',
  setup: 'session',
  '': 'session',
}

/** Converts `stream_memop` and `STREAM_MEMOP` to streamMemop. */
export function camelCase(name: string): string {
  return name.toLowerCase().replace(/_+(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** The name of a function's file. A page or family that is in no table gets its own file. */
export function nvshmemArea({ family, group }: FunctionSpec): string {
  if (family === undefined) return pages[group] ?? camelCase(group)
  const plain = family.replace(/_on_stream$/, '')
  const [pattern, area] = areas.find(([each]) => each.test(family)) ?? [/$^/, camelCase(plain)]
  const base = area
    .replace(/\$(\d)/g, (_, index) => pattern.exec(family)?.[Number(index)] ?? '')
    .replace(/_(\w)/, (_, letter: string) => letter.toUpperCase())
  return family.endsWith('_on_stream') ? `${base}OnStream` : base
}

/** True if an enumeration or struct is from NVSHMEM. A few in its headers have no prefix. */
export function isNvshmemName(name: string): boolean {
  return /^(nvshmem|gpu_coll_env_params|fcollect_algo_t|rdxn_ops|g_elem_t)/.test(name)
}

/** Enumerations for programs go to one file, those for the library's internals to another. */
export function nvshmemEnumFile(name: string): string {
  return /^nvshmem(x_|_team_id_t$|i_thread_support$)/.test(name) ? 'status' : 'internals'
}

export function nvshmemStructFile(name: string): string {
  return /^nvshmem(x_|_team_config)|^nvshmemi_version/.test(name) ? 'session' : 'internals'
}
