/** Everything that a case of the corpus uses: its kernels, random inputs, and counted comparisons. */
import { type CUfunction, cuLaunchCooperativeKernel } from '@shoal/cuda-sys/driver'
import { type Device, DeviceBuffer, type Module } from '@shoal/driver'
import { NativeMemory } from '@shoal/ffi'
import type { StructType } from '@shoal/types'
import { type ArrayOf, arrays, type Numbers, Random, type Scalar, type Value } from './random.js'
import { distance, f64 as double, f32 as single } from './real.js'

export interface Shape {
  readonly grid: number | readonly [number, number?, number?]
  readonly block: number | readonly [number, number?, number?]
  readonly sharedMemory?: number
  /** Runs all blocks at the same time. */
  readonly isCooperative?: boolean
}

/** An argument with its type. A plain number is an `i32`. */
export interface Typed {
  readonly type: Scalar | StructType | 'texture' | 'surface'
  readonly value: unknown
}
export const f32 = (value: number): Typed => ({ type: 'f32', value })
export const f64 = (value: number): Typed => ({ type: 'f64', value })
export const u32 = (value: number): Typed => ({ type: 'u32', value })
export type Argument = Numbers | DeviceBuffer<Scalar> | Typed | number

const guard = 0x5a
const guardBytes = 64

export class Trial {
  readonly random: Random
  /** The number of compared values, the largest error and the allowed error, in units of the last place. */
  compared = 0
  worst = 0
  allowed = 0
  readonly #device: Device
  readonly #module: Module
  readonly #name: string
  readonly #owned: { dispose(): void }[] = []

  constructor(device: Device, module: Module, name: string, seed: number) {
    this.#device = device
    this.#module = module
    this.#name = name
    this.random = new Random(seed)
  }

  get device(): Device {
    return this.#device
  }

  /** Returns an odd number of elements. */
  size(low = 200, high = 1500): number {
    return this.random.integer(low >> 1, high >> 1) * 2 + 1
  }

  array<S extends Scalar>(type: S, length: number, of?: (index: number) => Value): ArrayOf[S] {
    const made = new arrays[type](length)
    for (let index = 0; index < length; index += 1) made[index] = of === undefined ? this.random.any(type) : of(index)
    return made as ArrayOf[S]
  }

  integers(length: number, low: number, high: number): Int32Array {
    return this.array('i32', length, () => this.random.integer(low, high))
  }

  floats(length: number, low: number, high: number): Float32Array {
    return this.array('f32', length, () => this.random.real(low, high))
  }

  doubles(length: number, low: number, high: number): Float64Array {
    return this.array('f64', length, () => this.random.real(low, high))
  }

  /** Disposes of an object when the case ends, last made first. */
  own<T extends { dispose(): void }>(object: T): T {
    this.#owned.push(object)
    return object
  }

  /** Returns memory that several launches use. */
  buffer(values: Numbers): DeviceBuffer<Scalar> {
    const made = DeviceBuffer.from(
      this.#device,
      values as Int32Array<ArrayBuffer>,
    ) as DeviceBuffer<never> as DeviceBuffer<Scalar>
    return this.own(made)
  }

  /** Returns a variable of the module. */
  variable<S extends Scalar>(name: string, type: S): DeviceBuffer<S> {
    return this.#module.global(name, type)
  }

  /**
   * Runs the case's kernel and returns the arrays among its arguments. Checks that the kernel did not write beyond
   * them.
   */
  run(shape: Shape, ...args: readonly Argument[]): Promise<Numbers[]> {
    return this.runNamed(this.#name, shape, ...args)
  }

  async runNamed(name: string, shape: Shape, ...args: readonly Argument[]): Promise<Numbers[]> {
    const memory: { readonly bytes: DeviceBuffer<'u8'>; readonly like: Numbers }[] = []
    const values = args.map((argument) => {
      if (!ArrayBuffer.isView(argument))
        return typeof argument === 'object' && 'type' in argument ? argument.value : argument
      const bytes = new Uint8Array(argument.byteLength + guardBytes).fill(guard)
      bytes.set(new Uint8Array(argument.buffer, argument.byteOffset, argument.byteLength))
      memory.push({ bytes: DeviceBuffer.from(this.#device, bytes), like: argument })
      return memory.at(-1)?.bytes
    })
    const signature = args.map((argument) => {
      if (typeof argument === 'number') return 'i32' as const
      return typeof argument === 'object' && 'type' in argument ? argument.type : ('ptr' as const)
    })
    try {
      const kernel = this.#module.kernel(name, signature)
      if (shape.isCooperative === true) this.#launchCooperative(kernel.handle, shape, values)
      else
        kernel.launch(
          { grid: shape.grid, block: shape.block, sharedMemory: shape.sharedMemory },
          ...(values as never[]),
        )
      return await Promise.all(memory.map(({ bytes, like }) => this.#download(bytes, like)))
    } finally {
      for (const { bytes } of memory) bytes.dispose()
    }
  }

  async #download(from: DeviceBuffer<'u8'>, like: Numbers): Promise<Numbers> {
    const bytes = await from.toArray()
    if (bytes.subarray(like.byteLength).some((byte) => byte !== guard)) throw new Error('it wrote behind an array')
    const Like = like.constructor as new (buffer: ArrayBuffer, offset: number, length: number) => Numbers
    return new Like(bytes.buffer as ArrayBuffer, 0, like.length)
  }

  #launchCooperative(handle: CUfunction, { grid, block, sharedMemory = 0 }: Shape, values: readonly unknown[]): void {
    const memory = NativeMemory.allocate(values.length * 16)
    const slots = new BigUint64Array(memory.buffer, 0, values.length * 2)
    values.forEach((value, index) => {
      slots[index] = typeof value === 'number' ? BigInt(value) : (value as DeviceBuffer).address
      slots[values.length + index] = memory.address + BigInt(8 * index)
    })
    const three = (size: Shape['grid']): [number, number, number] =>
      typeof size === 'number' ? [size, 1, 1] : [size[0], size[1] ?? 1, size[2] ?? 1]
    const addresses = memory.address + BigInt(8 * values.length)
    const launch = (): number =>
      cuLaunchCooperativeKernel(handle, ...three(grid), ...three(block), sharedMemory, 0n as never, addresses)
    const status = this.#device.primaryContext.run(launch)
    memory.dispose()
    if (status !== 0) throw new Error(`cuLaunchCooperativeKernel: ${status}`)
  }

  /** Checks that every bit is equal. All NaNs count as equal. */
  same(actual: ArrayLike<Value>, expected: ArrayLike<Value>, what = 'result'): void {
    if (actual.length !== expected.length)
      throw new Error(`${what} has ${actual.length} elements, not ${expected.length}`)
    for (let index = 0; index < expected.length; index += 1) {
      const [found, wanted] = [actual[index], expected[index]]
      if (!Object.is(found, wanted)) throw new Error(`${what}[${index}] is ${show(found)}, not ${show(wanted)}`)
    }
    this.compared += expected.length
  }

  /**
   * Checks that results are at most `ulp` units of the last place wrong. If a result may be much smaller than the
   * numbers it was computed from, `scale` is the magnitude that defines the unit.
   */
  near(
    actual: Float32Array | Float64Array,
    expected: ArrayLike<number>,
    ulp: number,
    scale = 0,
    what = 'result',
  ): void {
    const format = actual instanceof Float32Array ? single : double
    for (let index = 0; index < expected.length; index += 1) {
      const [found, wanted] = [actual[index] as number, expected[index] as number]
      let off = distance(found, wanted, format)
      if (scale > Math.abs(wanted))
        off = Math.abs(found - wanted) / 2 ** (Math.floor(Math.log2(scale)) - format.bits + 1)
      if (!(off <= ulp))
        throw new Error(`${what}[${index}] is ${found}, ${off.toFixed(2)} units off ${wanted}: more than ${ulp}`)
      if (off > this.worst) this.worst = off
    }
    this.allowed = Math.max(this.allowed, ulp)
    this.compared += expected.length
  }

  dispose(): void {
    for (const object of this.#owned.reverse()) object.dispose()
  }
}

function show(value: Value | undefined): string {
  if (Object.is(value, -0)) return '-0'
  return typeof value === 'number' && Number.isInteger(value) && Math.abs(value) > 9
    ? `${value} (0x${value.toString(16)})`
    : String(value)
}
