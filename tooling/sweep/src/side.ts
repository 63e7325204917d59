// The TypeScript side: makes the calls of one group through the raw packages, in a separate process.
import { join } from 'node:path'
import { sysPackages } from '@shoal/bindgen/dist/proof/packages.js'
import { type LibraryName, scalarBytes } from '@shoal/bindgen/dist/spec/types.js'
import { addressOf, type NativeLibrary, readCString, readMemory, type StructCodec } from '@shoal/ffi'
import { LibraryNotFoundError, SymbolNotFoundError, VersionTooOldError } from '@shoal/types'
import type { Answer, Output } from './answers.js'
import type { Spec } from './spec.js'
import { type Argument, type Group, type Out, outsOf, type Step, type Value } from './steps.js'

const untouched = 0xa5
const guardBytes = 64
const sizes: Readonly<Record<string, number>> = {
  char: 1,
  int: 4,
  'unsigned int': 4,
  float: 4,
  size_t: 8,
  cuuint64_t: 8,
  'unsigned long long': 8,
  CUdeviceptr: 8,
}

type Exports = Readonly<Record<string, unknown>>

/** Imports the raw package of a library, and the library object. */
export async function importLibrary(id: LibraryName): Promise<{ exports: Exports; library: NativeLibrary }> {
  const exports = (await import(sysPackages[id].specifier)) as Exports
  return { exports, library: exports[id] as NativeLibrary }
}

/** Memory with a guard after it. */
class Block {
  readonly memory: Uint8Array
  readonly size: number

  constructor(size: number) {
    this.size = size
    this.memory = new Uint8Array(size + guardBytes).fill(untouched)
  }

  get data(): DataView {
    return new DataView(this.memory.buffer)
  }

  get hex(): string {
    return Buffer.from(this.memory.buffer, 0, this.size).toString('hex')
  }

  get guardIsIntact(): boolean {
    return this.memory.subarray(this.size).every((byte) => byte === untouched)
  }

  number(): bigint {
    return this.size < 8 ? BigInt(this.data.getInt32(0, true)) : this.data.getBigUint64(0, true)
  }
}

/** Makes the calls of one group and reports every answer. */
export class Side {
  readonly #spec: Spec
  readonly #exports: Exports
  readonly #kernels: string
  readonly #kept = new Map<string, Block>()

  constructor(spec: Spec, exports: Exports, kernels: string) {
    this.#spec = spec
    this.#exports = exports
    this.#kernels = kernels
  }

  run(group: Group, write: (line: object) => void): void {
    for (const [number, step] of group.steps.entries()) {
      const ready = step.needs.every((name) => this.#kept.has(name))
      if (step.kind === 'memory') {
        if (ready) this.#keepMemory(step)
        continue
      }
      write({ begin: number })
      write(ready ? { step: number, ...this.#call(step) } : { step: number, unasked: true })
    }
    write({ end: true })
  }

  #sizeOf(type: string): number {
    const codec = this.#exports[type]
    const scalar = this.#spec.scalar(type)
    if (scalar !== undefined) return scalarBytes(scalar)
    if (type.endsWith('*') || this.#spec.isHandle(type)) return 8
    if (this.#spec.isEnumeration(type)) return 4
    const size = sizes[type] ?? (codec as StructCodec<object> | undefined)?.size
    if (typeof size !== 'number') throw new Error(`${this.#spec.library}: the package has no layout of ${type}`)
    return size
  }

  #member(enumeration: string, name: string): number {
    const value = (this.#exports[enumeration] as Record<string, number> | undefined)?.[name]
    if (typeof value !== 'number') throw new Error(`the package has no ${enumeration}.${name}`)
    return value
  }

  #block(name: string): Block {
    return this.#kept.get(name) as Block
  }

  #address(name: string, plus: number): bigint {
    return addressOf(this.#block(name).memory) + BigInt(plus)
  }

  #keepMemory({ name, type, count, fields }: Step & { kind: 'memory' }): void {
    const block = new Block(this.#sizeOf(type) * count)
    block.memory.fill(0, 0, block.size)
    if (fields.length > 0) {
      const value: Record<string, unknown> = {}
      for (const [path, one] of fields) setPath(value, path.split('.'), this.#fieldValue(type, path.split('.'), one))
      ;(this.#exports[type] as StructCodec<object>).write(block.memory, value)
    }
    this.#kept.set(name, block)
  }

  /** Converts a value to the type of the field's codec: a number below 64 bits, otherwise a bigint. */
  #fieldValue(type: string, path: readonly string[], value: Value): unknown {
    let number: bigint
    if (value.kind === 'integer') number = BigInt(value.value)
    else if (value.kind === 'member') number = BigInt(this.#member(value.enumeration, value.name))
    else if (value.kind === 'use') number = this.#block(value.name).number() + BigInt(value.plus)
    else number = this.#address(value.name, value.plus)
    let current: unknown = (this.#exports[type] as StructCodec<object>).read(
      new Uint8Array((this.#exports[type] as StructCodec<object>).size),
    )
    for (const part of path) current = (current as Record<string, unknown>)[part]
    return typeof current === 'bigint' ? number : Number(number)
  }

  #call(step: Step & { kind: 'call' }): Omit<Answer, 'step'> {
    const { parameters, result } = this.#spec.function(step.function)
    const call = this.#exports[step.function]
    if (typeof call !== 'function') throw new Error(`the package has no function ${step.function}`)
    const blocks = new Map(outsOf(step).map((one) => [one, this.#outBlock(one)]))
    // Kept alive until the call ends, because the argument block holds only addresses.
    const held: unknown[] = []
    const values = step.arguments.map((one, position) =>
      this.#argument(one, parameters[position]?.lowered.kind ?? '', blocks, held),
    )
    let returned: unknown
    try {
      returned = call(...values)
    } catch (error) {
      if (error instanceof SymbolNotFoundError || error instanceof VersionTooOldError) return { missing: true }
      if (error instanceof LibraryNotFoundError || !(error instanceof Error)) throw error
      return { error: error.message }
    }
    const succeeded = typeof returned !== 'number' || returned === 0
    const outs = [...blocks].map(([one, block]) => this.#output(one, block, [...blocks.values()], succeeded))
    if (succeeded) for (const [one, block] of blocks) if (one.save !== undefined) this.#kept.set(one.save, block)
    const overrun = [...blocks.values()].some((block) => !block.guardIsIntact) ? { overrun: true as const } : {}
    return { ...this.#returned(result, returned), outs, ...overrun }
  }

  #returned(result: { kind: string; type?: string }, value: unknown): Pick<Answer, 'status' | 'text' | 'result'> {
    if (value === undefined) return { status: null }
    if (result.kind === 'struct') {
      const codec = this.#exports[result.type ?? ''] as StructCodec<object>
      return { result: Buffer.from(codec.allocate(value as object)).toString('hex') }
    }
    if (typeof value === 'bigint') return { text: textBytes(value) }
    if (typeof value === 'string') return { text: Buffer.from(value, 'utf8').toString('hex') }
    return { status: value as number }
  }

  #outBlock({ type, count, initial }: Out): Block {
    const block = new Block(this.#sizeOf(type) * count)
    if (initial !== undefined) {
      if (block.size < 8) block.data.setInt32(0, initial, true)
      else block.data.setBigUint64(0, BigInt(initial), true)
    }
    return block
  }

  #output({ follow }: Out, block: Block, all: readonly Block[], succeeded: boolean): Output {
    if (follow === undefined) return block.hex
    if (follow === 'text') return succeeded ? textBytes(block.number()) : null
    if (!succeeded) return []
    const count = Number(all[follow.count]?.number() ?? 0n)
    const table = new BigUint64Array(readMemory(block.number(), count * 8).slice().buffer)
    return [...table].map(textBytes)
  }

  #argument(one: Argument, kind: string, blocks: ReadonlyMap<Out, Block>, held: unknown[]): unknown {
    const isBig = ['handle', 'deviceptr', 'pointer', 'callback', 'cstring', 'size'].includes(kind)
    switch (one.kind) {
      case 'null':
        return null
      case 'text':
        return one.value
      case 'file':
        return join(this.#kernels, one.name)
      case 'integer':
        return isBig ? BigInt.asUintN(64, BigInt(one.value)) : one.value
      case 'member':
        return this.#member(one.enumeration, one.name)
      case 'use': {
        const number = this.#block(one.name).number() + BigInt(one.plus)
        return isBig ? number : Number(number)
      }
      case 'address':
        return this.#address(one.name, one.plus)
      case 'members':
        return Int32Array.from(one.names, (name) => this.#member(one.enumeration, name))
      case 'out':
        return blocks.get(one)?.memory
      case 'outs': {
        const addresses = BigUint64Array.from(one.items, (item) => addressOf((blocks.get(item) as Block).memory))
        held.push(addresses)
        return addresses
      }
    }
  }
}

function textBytes(address: bigint): string | null {
  const text = address === 0n ? null : readCString(address)
  return text === null ? null : Buffer.from(text, 'utf8').toString('hex')
}

function setPath(object: Record<string, unknown>, [first = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) object[first] = value
  else setPath((object[first] ??= {}) as Record<string, unknown>, rest, value)
}
