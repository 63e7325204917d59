/** Arguments of driver calls, as recorded by test/native/everyCallShim.c. */
import { driver } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { bindCall, putCString, slots64 } from '@shoal/ffi/calls'
import { compile, shimEnvironment } from './shim.js'

Object.assign(process.env, shimEnvironment(compile('everyCallShim')), { SHOAL_SIM_DEVICES: '2' })

const words = NativeMemory.allocate(16 * 8)
const bytes = NativeMemory.allocate(16 * 256)
const shim = (name: string, parameters: number): (() => number) =>
  bindCall(driver.rawSymbol(name) as bigint, parameters, 'i32', name)
const shimRecord = shim('shimRecord', 1)
const shimRecorded = shim('shimRecorded', 2)

/** The last arguments of a function. */
export class Told {
  readonly #words = words.u64.slice()
  readonly #bytes = bytes.bytes.slice()

  /** Returns an argument of 32 bits. */
  int(index: number): number {
    return Number(BigInt.asIntN(32, this.#words[index] as bigint))
  }

  /** Returns an argument of 64 bits. */
  size(index: number): number {
    return Number(this.#words[index])
  }

  /** Returns the memory that an argument points to. */
  at(index: number): DataView {
    return new DataView(this.#bytes.buffer, index * 256, 256)
  }

  ints(index: number, count: number, from = 0): number[] {
    return Array.from({ length: count }, (_, each) => this.at(index).getInt32(from + 4 * each, true))
  }

  sizes(index: number, count: number, from = 0): number[] {
    return Array.from({ length: count }, (_, each) => Number(this.at(index).getBigUint64(from + 8 * each, true)))
  }
}

export function told(api: string, act: () => unknown): Told {
  putCString(0, api, 'shimRecord', 'name')
  shimRecord()
  // The driver's answer does not matter.
  try {
    const made = act() as { dispose?: () => void } | undefined
    made?.dispose?.()
  } catch {}
  slots64[0] = words.address
  slots64[1] = bytes.address
  shimRecorded()
  return new Told()
}

/** Returns a reader for memory at an address that the package keeps. */
export function recordedAt(address: bigint): (offset: number) => number {
  slots64[0] = address
  slots64[1] = bytes.address
  shim('shimPeek', 2)()
  const view = new DataView(bytes.bytes.slice().buffer)
  return (offset) => view.getInt32(offset, true)
}
