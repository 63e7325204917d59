import { check, driverError, Status, scratch } from '@shoal/cuda-base'
import {
  type CUfunction,
  CUfunction_attribute,
  type CUstream,
  cuFuncGetAttribute,
  cuFuncGetParamInfo,
  cuFuncSetAttribute,
} from '@shoal/cuda-sys/driver'
import { describeValue, isDType, SymbolNotFoundError, VersionTooOldError } from '@shoal/types'
import { ArgumentBlock, parameterBytes } from './argumentBlock.js'
import type { Context } from './context.js'
import { type LaunchConfig, LaunchShape } from './launch.js'
import { launchCall } from './launchCall.js'
import type { Module } from './module.js'
import { PreparedLaunch } from './preparedLaunch.js'
import type { KernelArguments, KernelSignature } from './signature.js'
import { streamFor } from './stream.js'

type WithoutPrefix<Name, Prefix extends string> = Name extends `${Prefix}${infer Rest}` ? Rest : never

/** The attributes of a kernel: `CUfunction_attribute` without its prefix, such as `'NUM_REGS'`. */
export type KernelAttribute = Exclude<WithoutPrefix<keyof typeof CUfunction_attribute, 'CU_FUNC_ATTRIBUTE_'>, 'MAX'>

const maxDynamicSharedSize = 8

/** A kernel of a module with the types of its parameters. Made by `module.kernel()`; it keeps the module alive. */
export class Kernel<const S extends KernelSignature = KernelSignature> {
  readonly module: Module
  readonly name: string
  readonly signature: S
  /** The most threads a block of this kernel can have, from the registers it uses. */
  readonly maxThreadsPerBlock: number
  readonly #handle: CUfunction
  readonly #context: Context
  readonly #block: ArgumentBlock
  readonly #shape = new LaunchShape()
  /** Bytes of dynamic shared memory the kernel may have as things are; unknown until some is asked for. */
  #sharedMemoryLimit = 0

  private constructor(module: Module, name: string, handle: CUfunction, signature: S) {
    this.module = module
    this.name = name
    this.signature = requireSignature(signature)
    this.#handle = handle
    this.#context = module.context
    this.#checkParameters()
    this.maxThreadsPerBlock = this.attribute('MAX_THREADS_PER_BLOCK')
    this.#block = new ArgumentBlock(module.context, this.signature)
  }

  /** @internal */
  static _create<const S extends KernelSignature>(
    module: Module,
    name: string,
    handle: bigint,
    signature: S,
  ): Kernel<S> {
    return new Kernel(module, name, handle as CUfunction, signature)
  }

  /** The `CUfunction`. @throws DisposedError when the module was disposed of. */
  get handle(): CUfunction {
    this.module._requireUsable()
    return this.#handle
  }

  /**
   * Queues one run of the kernel and returns at once (`cuLaunchKernel`). What is wrong with the sizes or arguments is
   * found before the call. A failure while it runs shows at the next wait on the stream.
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  launch(config: LaunchConfig, ...args: KernelArguments<S>): void {
    this.module._requireUsable()
    const block = this.#block
    if (args.length !== block.length) refuseCount(this.name, args.length, block.length)
    for (let index = 0; index < args.length; index += 1) block.write(index, args[index])
    const shape = this.#shape
    shape.set(config, this.maxThreadsPerBlock)
    if (shape.sharedMemory > this.#sharedMemoryLimit) this._allowSharedMemory(shape.sharedMemory)
    this._launch(shape, streamFor(this.#context, config.stream), block)
  }

  /**
   * Checks and packs a launch once, to be repeated with `launch()`; `set()` changes one argument. Cheaper than
   * {@link launch} when little changes between runs.
   */
  prepare(config: LaunchConfig, ...args: KernelArguments<S>): PreparedLaunch<S> {
    this.module._requireUsable()
    if (args.length !== this.signature.length) refuseCount(this.name, args.length, this.signature.length)
    const shape = new LaunchShape()
    shape.set(config, this.maxThreadsPerBlock)
    if (shape.sharedMemory > this.#sharedMemoryLimit) this._allowSharedMemory(shape.sharedMemory)
    return PreparedLaunch._create(this, shape, config.stream, args)
  }

  /** One attribute by name (`cuFuncGetAttribute`). */
  attribute(attribute: KernelAttribute): number {
    const code = (CUfunction_attribute as Readonly<Record<string, CUfunction_attribute>>)[
      `CU_FUNC_ATTRIBUTE_${String(attribute)}`
    ]
    if (code === undefined) throw new TypeError(`unknown kernel attribute ${describeValue(attribute)}`)
    const { handle } = this
    const out = scratch()
    this.#context._call('cuFuncGetAttribute', () => cuFuncGetAttribute(out, code, handle))
    return out.i32[0] as number
  }

  get [Symbol.toStringTag](): string {
    return 'Kernel'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Kernel ${this.name}(${this.signature.join(', ')})`
  }

  /** @internal */
  _launch(shape: LaunchShape, stream: CUstream, block: ArgumentBlock): void {
    const status = launchCall(this.#context._handle, this.#handle, shape, stream, block.pointers)
    if (status !== Status.success) throw driverError(status, 'cuLaunchKernel', `kernel: ${this.name}`)
  }

  /** @internal Raises the kernel's limit of dynamic shared memory, which starts at 48 KiB less its static part. */
  _allowSharedMemory(byteLength: number): void {
    const { device } = this.#context
    const statically = this.attribute('SHARED_SIZE_BYTES')
    const most = device.attribute('MAX_SHARED_MEMORY_PER_BLOCK_OPTIN') - statically
    if (byteLength > most) {
      throw new RangeError(
        `sharedMemory is ${byteLength} bytes; device ${device.ordinal} has ${most} for this kernel, ` +
          `besides ${statically} it uses statically`,
      )
    }
    const present = this.attribute('MAX_DYNAMIC_SHARED_SIZE_BYTES')
    if (byteLength > present) {
      const { handle } = this
      this.#context._call('cuFuncSetAttribute', () => cuFuncSetAttribute(handle, maxDynamicSharedSize, byteLength))
    }
    this.#sharedMemoryLimit = Math.max(byteLength, present)
  }

  /** Compares the signature with what the image says, on drivers that can tell. */
  #checkParameters(): void {
    const { signature, name } = this
    const sizes = this.#declaredSizes(signature.length + 1)
    if (sizes === undefined) return
    if (sizes.length > signature.length) {
      const actual = this.#declaredSizes(4096)?.length
      throw new TypeError(`${name} has ${actual} parameters; the signature names ${signature.length}`)
    }
    if (sizes.length < signature.length) {
      throw new TypeError(`${name} has ${sizes.length} parameters; the signature names ${signature.length}`)
    }
    for (const [index, parameter] of signature.entries()) {
      const bytes = parameterBytes(parameter)
      if (sizes[index] !== bytes) {
        throw new TypeError(
          `parameter ${index} of ${name} has ${sizes[index]} bytes; the signature says ${parameter}, which has ${bytes}`,
        )
      }
    }
  }

  /** The sizes of the first parameters, as many as there are up to `most`; undefined where the driver cannot tell. */
  #declaredSizes(most: number): number[] | undefined {
    const { handle } = this
    const out = scratch()
    const sizes: number[] = []
    while (sizes.length < most) {
      const index = sizes.length
      let status: number
      try {
        status = this.#context.run(() => cuFuncGetParamInfo(handle, index, out.address, out.address + 8n))
      } catch (error) {
        if (error instanceof VersionTooOldError || error instanceof SymbolNotFoundError) return undefined
        throw error
      }
      // Said of an index beyond the last parameter.
      if (status === Status.invalidValue) break
      check(status, 'cuFuncGetParamInfo')
      sizes.push(Number(out.u64[1]))
    }
    return sizes
  }
}

function requireSignature<S extends KernelSignature>(signature: S): S {
  if (!Array.isArray(signature)) throw new TypeError(`signature must be an array, not ${describeValue(signature)}`)
  for (const [index, parameter] of signature.entries()) {
    if (parameter !== 'ptr' && !isDType(parameter)) {
      throw new TypeError(`signature[${index}] must be a dtype or 'ptr', not ${describeValue(parameter)}`)
    }
  }
  return Object.freeze([...signature]) as unknown as S
}

function refuseCount(name: string, given: number, expected: number): never {
  throw new TypeError(`${name} takes ${expected} arguments, not ${given}`)
}
