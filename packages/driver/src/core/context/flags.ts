import { type OptionKeys, optionalBoolean, requireKeyOf, requireOptions } from '@shoal/types'

/** How a context works (`CUctx_flags`, the flags of `cudaSetDeviceFlags`). */
export interface ContextFlags {
  /** How a thread that blocks for the device waits: as the driver thinks, by spinning, by yielding, or asleep. */
  readonly scheduling: 'auto' | 'spin' | 'yield' | 'blocking'
  /** Page-locked memory can be mapped; so it is on all platforms of today. */
  readonly mapHost: boolean
  /** Local memory that a kernel needed is kept for the next one. */
  readonly keepLocalMemory: boolean
  /** A fault writes a core dump. */
  readonly coredump: boolean
  /** A core dump can be asked for from outside. */
  readonly userCoredump: boolean
  /** Copies and fills that others would leave behind are waited for. */
  readonly synchronousMemory: boolean
}

export const contextFlagKeys: OptionKeys<ContextFlags> = {
  scheduling: true,
  mapHost: true,
  keepLocalMemory: true,
  coredump: true,
  userCoredump: true,
  synchronousMemory: true,
}

const schedulings = { auto: 0, spin: 1, yield: 2, blocking: 4 } as const
const schedulingMask = 7
const bits = {
  mapHost: 0x08,
  keepLocalMemory: 0x10,
  coredump: 0x20,
  userCoredump: 0x40,
  synchronousMemory: 0x80,
} as const

/** `CUfunc_cache` by its words: which of shared memory and L1 cache is to be larger. */
export const cacheConfigs = { none: 0, shared: 1, l1: 2, equal: 3 } as const
/** Which of shared memory and L1 cache kernels prefer to be larger. */
export type CacheConfig = keyof typeof cacheConfigs

/** Flags as C has them; what is left out is off. @throws TypeError */
export function encodeContextFlags(flags: Partial<ContextFlags>, api: string, name = 'flags'): number {
  requireOptions(flags, api, contextFlagKeys, name)
  const { scheduling = 'auto' } = flags
  let encoded: number = requireKeyOf(scheduling, api, 'scheduling', schedulings)
  for (const [flag, bit] of Object.entries(bits) as [keyof typeof bits, number][]) {
    if (optionalBoolean(flags[flag], api, flag, false)) encoded |= bit
  }
  return encoded
}

/** What the flags of C say. */
export function decodeContextFlags(encoded: number): ContextFlags {
  const has = (flag: keyof typeof bits): boolean => (encoded & bits[flag]) !== 0
  const scheduling = Object.entries(schedulings).find(([, code]) => code === (encoded & schedulingMask))?.[0]
  return {
    scheduling: (scheduling ?? 'auto') as ContextFlags['scheduling'],
    mapHost: has('mapHost'),
    keepLocalMemory: has('keepLocalMemory'),
    coredump: has('coredump'),
    userCoredump: has('userCoredump'),
    synchronousMemory: has('synchronousMemory'),
  }
}

/** The word for a code of `CUfunc_cache`. */
export function cacheConfigOf(code: number): CacheConfig {
  return Object.keys(cacheConfigs)[code] as CacheConfig
}
