import { type OptionKeys, optionalBoolean, requireKeyOf, requireOptions } from '@shoal/types'

/** Flags of a context (`CUctx_flags`, the flags of `cudaSetDeviceFlags`). */
export interface ContextFlags {
  /** How a blocked host thread waits for the device. `'auto'` leaves the choice to the driver. */
  readonly scheduling: 'auto' | 'spin' | 'yield' | 'blocking'
  /** Page-locked memory can be mapped. True on all current platforms. */
  readonly mapHost: boolean
  /** Keeps a kernel's local memory for the next kernel. */
  readonly keepLocalMemory: boolean
  /** A fault writes a core dump. */
  readonly coredump: boolean
  /** Another process can request a core dump. */
  readonly userCoredump: boolean
  /** Makes copies and fills synchronous that are otherwise asynchronous. */
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
/** Code of `mapHost`. */
export const mapHostFlag = 0x08
const bits = {
  mapHost: mapHostFlag,
  keepLocalMemory: 0x10,
  coredump: 0x20,
  userCoredump: 0x40,
  synchronousMemory: 0x80,
} as const

/** Values of `CUfunc_cache`: a preference for shared memory or L1 cache. */
export const cacheConfigs = { none: 0, shared: 1, l1: 2, equal: 3 } as const
/** Whether kernels prefer more shared memory or more L1 cache. */
export type CacheConfig = keyof typeof cacheConfigs

/** Encodes flags for C. Omitted flags are off. @throws TypeError */
export function encodeContextFlags(flags: Partial<ContextFlags>, api: string, name = 'flags'): number {
  requireOptions(flags, api, contextFlagKeys, name)
  const { scheduling = 'auto' } = flags
  let encoded: number = requireKeyOf(scheduling, api, 'scheduling', schedulings)
  for (const [flag, bit] of Object.entries(bits) as [keyof typeof bits, number][]) {
    if (optionalBoolean(flags[flag], api, flag, false)) encoded |= bit
  }
  return encoded
}

/** Decodes flags from C. */
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

/** Returns the name for a code of `CUfunc_cache`. */
export function cacheConfigOf(code: number): CacheConfig {
  return Object.keys(cacheConfigs)[code] as CacheConfig
}
