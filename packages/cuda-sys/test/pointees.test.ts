import { readFileSync } from 'node:fs'
import * as driver from '@shoal/cuda-sys/driver'
import * as runtime from '@shoal/cuda-sys/runtime'
import { NativeMemory } from '@shoal/ffi'
import { describe, expect, test } from 'vitest'

interface Parameter {
  readonly name: string
  readonly lowered: { readonly kind: string; readonly type?: string; readonly size?: number }
  readonly pointee?: { readonly size: number; readonly array?: true }
}
interface FunctionSpec {
  readonly name: string
  readonly parameters: readonly Parameter[]
}

type Generated = Readonly<Record<string, (...values: unknown[]) => unknown>>

function functionsOf(library: string): FunctionSpec[] {
  const file = new URL(`../../../tooling/bindgen/spec/${library}.json`, import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { functions: FunctionSpec[] }).functions
}

/** Returns a value that passes a parameter's check. */
function harmless({ lowered }: Parameter): unknown {
  switch (lowered.kind) {
    case 'pointer':
    case 'cstring':
    case 'handle':
    case 'callback':
      return null
    case 'deviceptr':
      return 0n
    case 'bool':
      return false
    case 'struct':
      return new Uint8Array(lowered.size as number)
    default:
      return 0
  }
}

/**
 * Calls a function with one given parameter and valid ones before it. Later parameters do not matter, because the call
 * throws first.
 */
function callWith(library: Generated, entry: FunctionSpec, index: number, value: unknown): void {
  const values = entry.parameters.map((parameter, each) => (each === index ? value : harmless(parameter)))
  const call = library[entry.name]
  if (call === undefined) throw new Error(`no function ${entry.name}`)
  call(...values)
}

describe.each([
  ['driver', driver],
  ['runtime', runtime],
] as const)('%s: undersized memory', (name, library) => {
  const cases = functionsOf(name).flatMap((entry) =>
    entry.parameters.flatMap((parameter, index) =>
      parameter.pointee ? [{ entry, parameter, index, ...parameter.pointee }] : [],
    ),
  )

  test('is refused with function, parameter and both sizes, before the library is searched', () => {
    expect(cases.length).toBeGreaterThan(200)
    for (const { entry, parameter, index, size, array } of cases) {
      const short: (ArrayBuffer | ArrayBufferView)[] = [
        new Uint8Array(size - 1),
        new ArrayBuffer(size - 1),
        new DataView(new ArrayBuffer(size), 1),
      ]
      using native = NativeMemory.allocate(size - 1)
      if (size > 4) short.push(new Float32Array(Math.ceil(size / 4) - 1))
      for (const memory of [...short, native]) {
        if (memory.byteLength === 0 && array) continue
        const call = (): void => callWith(library as unknown as Generated, entry, index, memory)
        expect(call, `${entry.name}.${parameter.name}`).toThrow(RangeError)
        expect(call).toThrow(`${entry.name}: ${parameter.name} must be memory of at least ${size} bytes`)
        expect(call).toThrow(`not of ${memory.byteLength}`)
      }
      if (array !== true)
        expect(() => callWith(library as unknown as Generated, entry, index, new Uint8Array(0))).toThrow(RangeError)
    }
  })
})

describe('arguments that must be accepted', () => {
  // After its checks a call loads the library, which does not exist in this test.
  const reaches = (call: () => void): void => expect(call).toThrow(/not found|could not be found|libcud/i)

  test('are empty lists, addresses, null, and larger memory', () => {
    process.env['SHOAL_CUDART_LIBRARY'] = '/nonexistent/libcudart.so'
    const node = new BigUint64Array(1)
    reaches(() => runtime.cudaGraphAddEmptyNode(node, runtime.cudaGraph_t(1n), new BigUint64Array(0), 0))
    reaches(() => runtime.cudaGraphAddEmptyNode(node, runtime.cudaGraph_t(1n), null, 0))
    reaches(() => runtime.cudaGetDeviceCount(1n))
    reaches(() => runtime.cudaGetDeviceCount(null))
    reaches(() => runtime.cudaGetDeviceCount(new Uint8Array(64)))
    reaches(() => runtime.cudaGetDeviceCount(new SharedArrayBuffer(4)))
    reaches(() => runtime.cudaDeviceGetPCIBusId(new Uint8Array(1), 1, 0))
    reaches(() => runtime.cudaLaunchKernel(1n, new Uint8Array(12), new Uint8Array(12), new BigUint64Array(0), 0, null))
  })
})
