import {
  type CUcoredumpSettings,
  cuCoredumpGetAttribute,
  cuCoredumpGetAttributeGlobal,
  cuCoredumpSetAttribute,
  cuCoredumpSetAttributeGlobal,
} from '@shoal/cuda-sys/driver'
import { NativeMemory, textIn } from '@shoal/ffi'
import { outOfRange, requireBoolean, requireInteger, requireKeyOf, requireText, wrongType } from '@shoal/types'
import { driverLibrary } from '../../core/calls/driverLibrary.js'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { check } from '../../core/errors.js'

/** Settings of GPU core dumps, which a failing kernel writes (`CUcoredumpSettings`). */
export interface CoreDumpSettings {
  /** Whether a fault writes a core dump. */
  enableOnException: boolean
  /** Whether the host process ends with its own core dump. */
  triggerHost: boolean
  /** Omits memory from the core dump. */
  lightweight: boolean
  /** Whether writing to the pipe requests a core dump. Only for the process. */
  enableUserTrigger: boolean
  /** Path of the core dump; `%h` is the host, `%p` the process. At most 1023 bytes. */
  file: string
  /** Path of the pipe. Only for the process. At most 1023 bytes. */
  pipe: string
  /** Omitted parts: bits of `CUCoredumpGenerationFlags`. Requires CUDA 12.5. */
  generationFlags: number
}

type Setting = keyof CoreDumpSettings

const settings = {
  enableOnException: [1, 'switch'],
  triggerHost: [2, 'switch'],
  lightweight: [3, 'switch'],
  enableUserTrigger: [4, 'switch'],
  file: [5, 'text'],
  pipe: [6, 'text'],
  generationFlags: [7, 'bits'],
} as const satisfies { readonly [S in Setting]: readonly [number, 'switch' | 'text' | 'bits'] }

const mostBytes = 1024

/** Scope of a setting: the process, or one context. A context uses the process's settings until it has its own. */
export type CoreDumpScope = DeviceOrContext | 'process'

/**
 * Returns one setting (`cuCoredumpGetAttribute`, `cuCoredumpGetAttributeGlobal`).
 * @throws TypeError for an unknown setting; VersionTooOldError on drivers before 12.1; StatusError
 */
export function coreDumpSetting<S extends Setting>(scope: CoreDumpScope, setting: S): CoreDumpSettings[S] {
  const api = 'coreDumpSetting'
  const context = contextOfScope(scope, api)
  const [code, kind] = requireKeyOf<readonly [number, string]>(setting, api, 'setting', settings)
  const cells = NativeMemory.allocate(mostBytes + 8)
  const value = cells.address + 8n
  cells.u64[0] = BigInt(kind === 'switch' ? 1 : kind === 'bits' ? 4 : mostBytes)
  const attribute = code as CUcoredumpSettings
  if (context === undefined) {
    check(cuCoredumpGetAttributeGlobal(attribute, value, cells), 'cuCoredumpGetAttributeGlobal')
  } else {
    context._callDriver('cuCoredumpGetAttribute', () => cuCoredumpGetAttribute(attribute, value, cells))
  }
  const bytes = cells.bytes.subarray(8)
  return (kind === 'switch' ? bytes[0] !== 0 : kind === 'bits' ? cells.u32[2] : textIn(bytes)) as CoreDumpSettings[S]
}

/**
 * Changes one setting (`cuCoredumpSetAttribute`, `cuCoredumpSetAttributeGlobal`). Change the process's settings before
 * it creates contexts. @throws as {@link coreDumpSetting}; RangeError
 */
export function setCoreDumpSetting<S extends Setting>(
  scope: CoreDumpScope,
  setting: S,
  value: CoreDumpSettings[S],
): void {
  const api = 'setCoreDumpSetting'
  const context = contextOfScope(scope, api)
  const [code, kind] = requireKeyOf<readonly [number, string]>(setting, api, 'setting', settings)
  const cells = NativeMemory.allocate(mostBytes + 8)
  cells.u64[0] = BigInt(writeValue(cells, kind, value, api))
  const at = cells.address + 8n
  const attribute = code as CUcoredumpSettings
  if (context === undefined) {
    check(cuCoredumpSetAttributeGlobal(attribute, at, cells), 'cuCoredumpSetAttributeGlobal')
  } else {
    context._callDriver('cuCoredumpSetAttribute', () => cuCoredumpSetAttribute(attribute, at, cells))
  }
}

/** Writes a value and returns its number of bytes. */
function writeValue(cells: NativeMemory, kind: string, value: unknown, api: string): number {
  const bytes = cells.bytes.subarray(8)
  if (kind === 'switch') {
    bytes[0] = requireBoolean(value, api, 'value') ? 1 : 0
    return 1
  }
  if (kind === 'bits') {
    cells.u32[2] = requireInteger(value, api, 'value', 0, 0xffff_ffff)
    return 4
  }
  const { read, written } = new TextEncoder().encodeInto(requireText(value, api, 'value'), bytes.subarray(0, -1))
  if (read < (value as string).length) throw outOfRange(api, 'value', `of at most ${mostBytes - 1} bytes`, value)
  return written + 1
}

function contextOfScope(scope: CoreDumpScope, api: string): Context | undefined {
  if (typeof scope !== 'string') return contextOf(scope, api, 'scope')
  if (scope !== 'process') throw wrongType(api, 'scope', "a device, a context or 'process'", scope)
  driverLibrary.start()
  return undefined
}
