import {
  type CUfunction,
  CUfunction_attribute,
  cuFuncGetAttribute,
  cuFuncGetParamInfo,
  cuFuncSetAttribute,
  cuOccupancyMaxActiveClusters,
  cuOccupancyMaxPotentialClusterSize,
} from '@shoal/cuda-sys/driver/common'
import {
  inspectKey,
  inspectLine,
  loadedFrom,
  outOfRange,
  SymbolNotFoundError,
  VersionTooOldError,
  wrongType,
} from '@shoal/types'
import type { Context } from '../context/context.js'
import { check, driverError, Status } from '../errors.js'
import { scratch } from '../native.js'
import {
  activeBlocksOf,
  availableSharedMemoryOf,
  type BlockSizeOptions,
  type OccupancyOptions,
  type PotentialBlockSize,
  searchBlockSize,
} from '../occupancy/occupancy.js'
import { streamHalvesFor } from '../stream/stream.js'
import { halvesOf, type U64Halves } from '../u64Halves.js'
import { ArgumentBlock } from './argumentBlock.js'
import { EncodedAttributes, type LaunchAttributes } from './launchAttributes.js'
import { launchCall } from './launchCall.js'
import { type LaunchConfig, LaunchShape } from './launchConfig.js'
import { LaunchExConfig } from './launchExCall.js'
import { PreparedLaunch } from './preparedLaunch.js'
import {
  type KernelArguments,
  type KernelSignature,
  parameterBytes,
  parameterName,
  requireSignature,
} from './signature.js'

type WithoutPrefix<Name, Prefix extends string> = Name extends `${Prefix}${infer Rest}` ? Rest : never

/** The attributes of a kernel: `CUfunction_attribute` without its prefix, such as `'NUM_REGS'`. */
export type KernelAttribute = Exclude<WithoutPrefix<keyof typeof CUfunction_attribute, 'CU_FUNC_ATTRIBUTE_'>, 'MAX'>

const maxDynamicSharedSize = 8

/** The module that a kernel is of: `Module`, as far as its kernels know it. */
export interface KernelModule extends Disposable {
  readonly context: Context
  readonly device: Context['device']
  /** Whether it was disposed of, and its kernels with it. */
  readonly disposed: boolean
  dispose(): void
  kernel<const S extends KernelSignature>(name: string, signature: S): Kernel<S>
  /** @internal @throws DisposedError */
  _requireUsable(): void
}

/** @internal A launch as a node of a graph has it. */
export interface KernelDescription {
  readonly shape: LaunchShape
  /** Packs the arguments, and gives the address of what C calls `kernelParams`, until the next launch is packed so. */
  readonly packArguments: () => bigint
  /** What has to be there when it runs, each with a check that throws once it is gone. */
  readonly needs: Map<object, () => void>
  readonly attributes: EncodedAttributes | undefined
}

/**
 * A kernel of a module with the types of its parameters. Made by `module.kernel()`; it keeps the module alive.
 *
 * @example
 * ```ts
 * const axpy = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
 * axpy.launch({ grid: 4096, block: 256, stream }, 2, x, y, x.length)
 *
 * const Params = defineStruct('Params', { scale: 'f32', offset: ['i32', 3] })
 * const scale = module.kernel('scale', [Params, 'ptr'])
 * scale.launch({ grid: 1, block: 32 }, { scale: 2, offset: [0, 0, 1] }, x)
 * ```
 */
export class Kernel<const S extends KernelSignature = KernelSignature> {
  /** @internal */
  static readonly [loadedFrom] = import.meta.url
  /** The module it is of. */
  readonly module: KernelModule
  /** Its name in the image. */
  readonly name: string
  /** The types of its parameters. */
  readonly signature: S
  /** The most threads a block of this kernel can have, from the registers it uses. */
  readonly maxThreadsPerBlock: number
  readonly #handle: CUfunction
  readonly #halves: U64Halves
  readonly #context: Context
  readonly #requireUsable = (): void => this.module._requireUsable()
  #block: ArgumentBlock
  /** Where the arguments of nodes are packed: a graph copies them when one is added. */
  #nodeBlock: ArgumentBlock | undefined
  #shape: LaunchShape
  /** Whether a launch is under way: the code of getters runs within it. */
  #isLaunching = false
  /** Bytes of dynamic shared memory the kernel may have as things are; unknown until some is asked for. */
  #sharedMemoryLimit = 0

  /** What launches of it have beside sizes and arguments; made by {@link with}. */
  readonly #attributes: EncodedAttributes | undefined
  readonly #exConfig: LaunchExConfig | undefined

  private constructor(
    module: KernelModule,
    name: string,
    handle: CUfunction,
    signature: S,
    attributes?: EncodedAttributes,
  ) {
    this.#attributes = attributes
    this.#exConfig = attributes === undefined ? undefined : new LaunchExConfig(attributes)
    this.module = module
    this.name = name
    this.signature = requireSignature(signature, 'Module.kernel')
    this.#handle = handle
    this.#halves = halvesOf(handle)
    this.#context = module.context
    this.#checkParameters()
    this.maxThreadsPerBlock = this.attribute('MAX_THREADS_PER_BLOCK')
    this.#block = new ArgumentBlock(module.context, this.signature, 'Kernel.launch')
    this.#shape = new LaunchShape('Kernel.launch', this.maxThreadsPerBlock)
  }

  /** @internal */
  static _create<const S extends KernelSignature>(
    module: KernelModule,
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
   * Queues one run of the kernel and returns at once (`cuLaunchKernel`). Sizes and arguments are checked before the call.
   * A failure while the kernel runs shows at the next wait on the stream.
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  launch(config: LaunchConfig, ...args: KernelArguments<S>): void {
    this.module._requireUsable()
    if (this.#isLaunching) this.#renew()
    this.#isLaunching = true
    const block = this.#block
    const shape = this.#shape
    if (args.length !== block.length) this.#refuseCount(args.length, 'Kernel.launch')
    // Before the arguments: getters of the configuration may dispose of what they name.
    const stream = shape.set(config)
    if (shape.sharedMemory > this.#sharedMemoryLimit) this.#allowSharedMemory(shape.sharedMemory, 'Kernel.launch')
    const queue = streamHalvesFor(this.#context, stream, 'Kernel.launch')
    if (args.length > 0) block.write(args)
    this.module._requireUsable()
    this._launch(shape, queue, block)
    this.#isLaunching = false
  }

  /**
   * Checks and packs a launch once, to be repeated with `launch()`; `set()` changes one argument. Cheaper than
   * {@link launch} when little changes between runs.
   * @throws TypeError, RangeError, DisposedError
   */
  prepare(config: LaunchConfig, ...args: KernelArguments<S>): PreparedLaunch<S> {
    this.module._requireUsable()
    if (args.length !== this.signature.length) this.#refuseCount(args.length, 'Kernel.prepare')
    const shape = new LaunchShape('Kernel.prepare', this.maxThreadsPerBlock)
    const stream = shape.set(config)
    if (shape.sharedMemory > this.#sharedMemoryLimit) this.#allowSharedMemory(shape.sharedMemory, 'Kernel.prepare')
    return PreparedLaunch._create(this, shape, stream, args)
  }

  /**
   * The same kernel, whose launches have attributes (`cuLaunchKernelEx`): clusters, cooperative launches, priorities, programmatic
   * dependence and what else `CUlaunchAttribute` knows. They are checked and encoded once, so launching costs what it costs
   * without. It has the attributes given here alone, not those of a kernel made so before.
   * @throws TypeError, RangeError; DisposedError
   *
   * @example
   * const clustered = kernel.with({ clusterDimension: 4 })
   * clustered.launch({ grid: 64, block: 128, stream }, x)
   */
  with(attributes: LaunchAttributes): Kernel<S> {
    const { handle } = this
    return new Kernel(this.module, this.name, handle, this.signature, EncodedAttributes.of(attributes, 'Kernel.with'))
  }

  /**
   * How many clusters of such launches run on the device at once (`cuOccupancyMaxActiveClusters`); for a kernel
   * {@link with} a `clusterDimension`.
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  maxActiveClusters(config: Omit<LaunchConfig, 'stream'>): number {
    return this.#clusters(
      config,
      'Kernel.maxActiveClusters',
      cuOccupancyMaxActiveClusters,
      'cuOccupancyMaxActiveClusters',
    )
  }

  /**
   * The most blocks that a cluster of such launches can have (`cuOccupancyMaxPotentialClusterSize`).
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  potentialClusterSize(config: Omit<LaunchConfig, 'stream'>): number {
    const api = 'Kernel.potentialClusterSize'
    return this.#clusters(config, api, cuOccupancyMaxPotentialClusterSize, 'cuOccupancyMaxPotentialClusterSize')
  }

  #clusters(
    config: Omit<LaunchConfig, 'stream'>,
    api: string,
    call: typeof cuOccupancyMaxActiveClusters,
    name: string,
  ): number {
    const { handle } = this
    const shape = new LaunchShape(api, this.maxThreadsPerBlock)
    shape.set(config)
    const launch = new LaunchExConfig(this.#attributes ?? EncodedAttributes.of({}, api))
    launch.set(shape, halvesOf(0n))
    const out = scratch()
    this.#context._callDriver(name, () => call(out, handle, launch.memory))
    return out.i32[0] as number
  }

  /** One attribute by name (`cuFuncGetAttribute`). @throws TypeError for an unknown name, DisposedError, StatusError */
  attribute(attribute: KernelAttribute): number {
    const codes = CUfunction_attribute as Readonly<Record<string, CUfunction_attribute>>
    const code = typeof attribute === 'string' ? codes[`CU_FUNC_ATTRIBUTE_${attribute}`] : undefined
    if (code === undefined) {
      throw wrongType('Kernel.attribute', 'attribute', "a CUfunction_attribute such as 'NUM_REGS'", attribute)
    }
    const { handle } = this
    const out = scratch()
    this.#context._callDriver('cuFuncGetAttribute', () => cuFuncGetAttribute(out, code, handle))
    return out.i32[0] as number
  }

  /**
   * How many blocks of the kernel run on one multiprocessor at once
   * (`cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`).
   * @param blockSize threads in a block, from 1 to 1024.
   * @throws TypeError, RangeError, DisposedError, StatusError
   *
   * @example
   * const grid = kernel.maxActiveBlocks(256) * device.attribute('MULTIPROCESSOR_COUNT') // all that run at once
   */
  maxActiveBlocks(blockSize: number, options: OccupancyOptions = {}): number {
    const { handle } = this
    return activeBlocksOf(this.#context, handle, blockSize, options, 'Kernel.maxActiveBlocks')
  }

  /**
   * Bytes of dynamic shared memory that a block can have where `blockCount` blocks of `blockSize` threads, from 1 to 1024,
   * are to run on one multiprocessor at once (`cuOccupancyAvailableDynamicSMemPerBlock`).
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  availableSharedMemory(blockCount: number, blockSize: number): number {
    const { handle } = this
    return availableSharedMemoryOf(this.#context, handle, blockCount, blockSize, 'Kernel.availableSharedMemory')
  }

  /**
   * The number of threads in a block with which most threads of a multiprocessor are busy, the largest where several do
   * equally, and how many such blocks run on the whole device at once. The search of `cuOccupancyMaxPotentialBlockSize`,
   * by {@link maxActiveBlocks} of block sizes in steps of a warp.
   * @throws TypeError, RangeError, DisposedError, StatusError; what `sharedMemory` throws
   *
   * @example
   * const { blockSize, minGridSize } = kernel.potentialBlockSize({ sharedMemory: (threads) => threads * 4 })
   */
  potentialBlockSize(options: BlockSizeOptions = {}): PotentialBlockSize {
    const { handle } = this
    const { device } = this.#context
    const facts = {
      maxThreadsPerBlock: this.maxThreadsPerBlock,
      warpSize: device.attribute('WARP_SIZE'),
      multiprocessors: device.attribute('MULTIPROCESSOR_COUNT'),
      threadsPerMultiprocessor: device.attribute('MAX_THREADS_PER_MULTIPROCESSOR'),
    }
    return searchBlockSize(this.#context, handle, facts, options, 'Kernel.potentialBlockSize')
  }

  /** @internal A launch as a node of a graph has it: checked and packed. */
  _describe(config: Omit<LaunchConfig, 'stream'>, args: readonly unknown[], api: string): KernelDescription {
    this.module._requireUsable()
    if (args.length !== this.signature.length) this.#refuseCount(args.length, api)
    const shape = new LaunchShape(api, this.maxThreadsPerBlock)
    if (shape.set(config) !== undefined) {
      throw wrongType(api, 'stream', 'left out: a node runs where its graph is launched', config)
    }
    if (shape.sharedMemory > this.#sharedMemoryLimit) this.#allowSharedMemory(shape.sharedMemory, api)
    const packArguments = (): bigint => this.#withNodeBlock(api, (block) => block.write(args))
    packArguments()
    const attributes = this.#attributes
    const needs = new Map<object, () => void>(attributes?.needs)
    needs.set(this, this.#requireUsable)
    for (const [index, value] of args.entries()) {
      if (typeof value !== 'object' || value === null) continue
      needs.set(value, () => this.#withNodeBlock(api, (block) => block.recheck(index, value)))
    }
    return { shape, packArguments, needs, attributes }
  }

  /** The getters of an argument may come here again, and find another block. Gives where C reads the arguments. */
  #withNodeBlock(api: string, work: (block: ArgumentBlock) => void): bigint {
    const block = this.#nodeBlock ?? new ArgumentBlock(this.#context, this.signature, api)
    this.#nodeBlock = undefined
    block.api = api
    try {
      work(block)
    } finally {
      this.#nodeBlock = block
    }
    return block.memory.address
  }

  get [Symbol.toStringTag](): string {
    return 'Kernel'
  }

  [inspectKey](): string {
    return inspectLine('Kernel', { name: this.name, parameters: this.signature.map(parameterName).join(', ') })
  }

  /**
   * A getter of the arguments launches the kernel as well: what is packed so far stays with the launch that packs it. Also
   * after a launch that was refused.
   */
  #renew(): void {
    this.#block = new ArgumentBlock(this.#context, this.signature, 'Kernel.launch')
    this.#shape = new LaunchShape('Kernel.launch', this.maxThreadsPerBlock)
  }

  /** @internal */
  _launch(shape: LaunchShape, stream: U64Halves, block: ArgumentBlock): void {
    const config = this.#exConfig
    if (config !== undefined) {
      this.#launchEx(config, shape, stream, block)
      return
    }
    const status = launchCall(this.#context._halves, this.#halves, shape, stream, block.pointers)
    if (status !== Status.success) throw driverError(status, 'cuLaunchKernel', `kernel: ${this.name}`)
  }

  #launchEx(config: LaunchExConfig, shape: LaunchShape, stream: U64Halves, block: ArgumentBlock): void {
    config.set(shape, stream)
    const status = config.launch(this.#context._handle, this.#halves, block.pointers)
    if (status !== Status.success) throw driverError(status, 'cuLaunchKernelEx', `kernel: ${this.name}`)
  }

  /** Raises the kernel's limit of dynamic shared memory, which starts at 48 KiB less its static part. */
  #allowSharedMemory(byteLength: number, api: string): void {
    const { device } = this.#context
    const statically = this.attribute('SHARED_SIZE_BYTES')
    const most = device.attribute('MAX_SHARED_MEMORY_PER_BLOCK_OPTIN') - statically
    if (byteLength > most) {
      const expected = `at most ${most}, what device ${device.ordinal} has for this kernel besides its ${statically} static bytes`
      throw outOfRange(api, 'sharedMemory', expected, byteLength)
    }
    const present = this.attribute('MAX_DYNAMIC_SHARED_SIZE_BYTES')
    if (byteLength > present) {
      const { handle } = this
      this.#context._callDriver('cuFuncSetAttribute', () =>
        cuFuncSetAttribute(handle, maxDynamicSharedSize, byteLength),
      )
    }
    this.#sharedMemoryLimit = Math.max(byteLength, present)
  }

  #refuseCount(given: number, api: string): never {
    throw new TypeError(`${api}: args must be the ${this.signature.length} arguments of ${this.name}, not ${given}`)
  }

  /** Compares the signature with what the image says, on drivers that can tell. */
  #checkParameters(): void {
    const { signature, name } = this
    const sizes = this.#declaredSizes(signature.length + 1)
    if (sizes === undefined) return
    if (sizes.length !== signature.length) {
      const count = sizes.length < signature.length ? sizes.length : this.#declaredSizes(4096)?.length
      throw new TypeError(
        `Module.kernel: signature must name all parameters of ${name}, which has ${count}, not ${signature.length}`,
      )
    }
    for (const [index, parameter] of signature.entries()) {
      const bytes = parameterBytes(parameter)
      if (sizes[index] === bytes) continue
      throw new TypeError(
        `Module.kernel: signature[${index}] must have ${sizes[index]} bytes, as in ${name}, ` +
          `not the ${bytes} of ${parameterName(parameter)}`,
      )
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
