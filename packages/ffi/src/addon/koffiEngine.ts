import { isAbsolute } from 'node:path'
import { FeatureNotSupportedError } from '@shoal/types'
import {
  contextSlot,
  floatSlot,
  floats32,
  floats64,
  maximumStructure,
  resultSlot,
  returnedStructure,
  slots64,
} from './block.js'
import type { Addon } from './contract.js'
import { type Koffi, loadKoffi } from './koffi.js'

type Call = (...values: unknown[]) => unknown

/** The part of the addon that raw calls need: no threads, waits, callbacks or sockets. */
type RawCalls = Pick<
  Addon,
  | 'initialize'
  | 'bind'
  | 'putAddress'
  | 'setContextFunctions'
  | 'enterContext'
  | 'leaveContext'
  | 'allocate'
  | 'release'
  | 'detach'
  | 'addressOf'
  | 'readCString'
  | 'copyOut'
  | 'open'
  | 'symbol'
>

const notInitialized = 3

// Indexed by the codes of bind.ts.
const resultTypes = [
  'int32_t',
  'uint32_t',
  'void',
  'uint64_t',
  'int64_t',
  'float',
  'double',
  'int8_t',
  'uint8_t',
  'int16_t',
  'uint16_t',
  'uint8_t',
]
const resultCodes = { word: 3, signedWord: 4, float: 5, double: 6, bool: 11, structure: 12 } as const

/**
 * Returns an engine that makes raw calls through koffi, for platforms without the addon.
 *
 * All other addon functions throw {@link FeatureNotSupportedError}.
 */
export function koffiEngine(): Addon {
  const koffi = loadKoffi('SHOAL_FFI_ENGINE=koffi')
  const engine = rawCalls(koffi)
  return new Proxy(engine as Addon, {
    get(target, name) {
      const found: unknown = Reflect.get(target, name)
      // Absent, as on platforms without sockets.
      if (found !== undefined || name === 'socketPair') return found
      const reason = 'it makes raw calls only (SHOAL_FFI_ENGINE=koffi); threads, waits and callbacks need the addon'
      throw new FeatureNotSupportedError({ library: 'koffi', api: String(name), reason })
    },
  })
}

function rawCalls(koffi: Koffi): RawCalls {
  const libraries: ReturnType<Koffi['load']>[] = []
  const current = new BigUint64Array(1)
  let getCurrent: Call | undefined
  let setCurrent: Call | undefined

  const callAt = (
    address: bigint,
    words: number,
    floats: number,
    result: string | ReturnType<Koffi['struct']>,
  ): Call => {
    const parameters = [...new Array<string>(words).fill('uint64_t'), ...new Array<string>(floats).fill('double')]
    return koffi.decode(address, koffi.proto(result, parameters)) as Call
  }
  const addressOf = (view: ArrayBufferView | ArrayBufferLike): bigint =>
    koffi.address(
      ArrayBuffer.isView(view) ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : new Uint8Array(view),
    )

  /** Like the addon: returns 1 if the context changed, 0 if not, minus the library's status on failure. */
  const enter = (context: bigint): { readonly outcome: number; readonly previous: bigint } => {
    if (getCurrent === undefined || setCurrent === undefined) return { outcome: -notInitialized, previous: 0n }
    current[0] = 0n
    const asked = getCurrent(addressOf(current)) as number
    const previous = current[0]
    if (asked !== 0 || previous === context) return { outcome: -asked, previous }
    const status = setCurrent(context) as number
    return { outcome: status === 0 ? 1 : -status, previous }
  }
  const restore = (previous: bigint): void => {
    // If the caller's context was destroyed meanwhile, no context becomes current.
    if (setCurrent?.(previous) !== 0) setCurrent?.(0n)
  }
  const writeResult = (result: number, resultBytes: number, returned: unknown): number => {
    switch (result) {
      case resultCodes.word:
      case resultCodes.signedWord:
        slots64[resultSlot] = BigInt(returned as number | bigint)
        return 0
      case resultCodes.float:
        floats32[2 * resultSlot] = returned as number
        return 0
      case resultCodes.double:
        floats64[resultSlot] = returned as number
        return 0
      case resultCodes.structure:
        returnedStructure(resultBytes).set((returned as { bytes: Uint8Array }).bytes)
        return 0
      case resultCodes.bool:
        return returned === 0 ? 0 : 1
      default:
        return returned as number
    }
  }

  return {
    initialize() {},
    open(name, onlyIfLoaded) {
      if (onlyIfLoaded) return 'koffi cannot tell'
      try {
        libraries.push(koffi.load(name, { lazy: true }))
        return { handle: BigInt(libraries.length), path: isAbsolute(name) ? name : '' }
      } catch (error) {
        return error instanceof Error ? error.message : String(error)
      }
    },
    symbol(handle, name) {
      try {
        return libraries[Number(handle) - 1]?.symbol(name) as bigint
      } catch {
        return 0n
      }
    },
    bind(address, words, floats, result, resultBytes, name) {
      const type =
        result === resultCodes.structure
          ? koffi.struct({ bytes: koffi.array('uint8_t', Math.min(resultBytes, maximumStructure), 'Typed') })
          : (resultTypes[result] as string)
      const call = callAt(address, words, floats, type)
      const callNow = (): number =>
        writeResult(
          result,
          resultBytes,
          call(...slots64.subarray(0, words), ...floats64.subarray(floatSlot, floatSlot + floats)),
        )
      return () => {
        const context = slots64[contextSlot] as bigint
        if (context === 0n) return callNow()
        slots64[contextSlot] = 0n
        const { outcome, previous } = enter(context)
        if (outcome < 0 && result > 1)
          throw new Error(`${name}: the context could not be made current: status ${-outcome}`)
        if (outcome < 0) return -outcome
        try {
          return callNow()
        } finally {
          if (outcome === 1) restore(previous)
        }
      }
    },
    putAddress(view, slot) {
      slots64[slot] = addressOf(view)
    },
    setContextFunctions(getter, setter) {
      getCurrent = callAt(getter, 1, 0, 'int32_t')
      setCurrent = callAt(setter, 1, 0, 'int32_t')
    },
    enterContext() {
      const { outcome, previous } = enter(slots64[contextSlot] as bigint)
      slots64[contextSlot] = previous
      return outcome
    },
    leaveContext() {
      const previous = slots64[contextSlot]
      slots64[contextSlot] = 0n
      return setCurrent === undefined ? notInitialized : (setCurrent(previous) as number)
    },
    allocate(byteLength) {
      const buffer = new ArrayBuffer(byteLength)
      return { buffer, address: addressOf(buffer) }
    },
    release() {},
    detach(buffer) {
      structuredClone(buffer, { transfer: [buffer] })
    },
    addressOf,
    readCString: (address) => (address === 0n ? null : koffi.decode.string(address)),
    copyOut(address, target) {
      target.set(new Uint8Array(koffi.view(address, target.byteLength)))
    },
  }
}
