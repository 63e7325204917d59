import {
  type CUfunc_cache,
  type CUfunction,
  CUfunction_attribute,
  cuFuncGetAttribute,
  cuFuncGetParamInfo,
  cuFuncSetAttribute,
  cuFuncSetCacheConfig,
  cuOccupancyMaxActiveClusters,
  cuOccupancyMaxPotentialClusterSize,
} from '@shoal/cuda-sys/driver'
import {
  inspectKey,
  inspectLine,
  loadedFrom,
  outOfRange,
  PublicObject,
  requireInteger,
  requireKeyOf,
  requireMade,
  wrongType,
} from '@shoal/types'
import { EncodedAttributes, type LaunchAttributes } from '../../core/attributes/launchAttributes.js'
import { cuLaunchKernelUnchecked } from '../../core/calls/uncheckedCalls.gen.js'
import { isCapturing } from '../../core/context/capturing.js'
import type { Context } from '../../core/context/context.js'
import { keepCaptured } from '../../core/context/keptByCaptures.js'
import { driverError, Status } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { streamHalvesFor } from '../../core/stream/stream.js'
import { halvesOf, type U64Halves, u64Of } from '../../core/u64Halves.js'
import { reachNeed } from '../../memory/buffers/reach.js'
import {
  activeBlocksOf,
  availableSharedMemoryOf,
  type BlockSizeOptions,
  type OccupancyOptions,
  type PotentialBlockSize,
  searchBlockSize,
} from '../occupancy/occupancy.js'
import { ArgumentBlock } from './argumentBlock.js'
import { type LaunchConfig, LaunchShape } from './launchConfig.js'
import { LaunchExConfig } from './launchExCall.js'
import { checkParameters, type ParameterInfo, parameterInfo, refuseNone } from './parameters.js'
import { PreparedLaunch } from './preparedLaunch.js'
import {
  isReference,
  type KernelArguments,
  type KernelSignature,
  parameterName,
  requireSignature,
} from './signature.js'

/** Whether a kernel prefers more shared memory or more L1 cache. */
export type CachePreference = keyof typeof cachePreferences

/** Values of `CUfunc_cache`. */
export const cachePreferences = { none: 0, shared: 1, cache: 2, equal: 3 } as const

/** @internal Returns the code of a kernel attribute. @throws TypeError */
export function attributeCode(attribute: KernelAttribute, api: string): CUfunction_attribute {
  const codes = CUfunction_attribute as Readonly<Record<string, CUfunction_attribute>>
  const code = typeof attribute === 'string' ? codes[`CU_FUNC_ATTRIBUTE_${attribute}`] : undefined
  if (code !== undefined) return code
  throw wrongType(api, 'attribute', "a CUfunction_attribute such as 'NUM_REGS'", attribute)
}

type WithoutPrefix<Name, Prefix extends string> = Name extends `${Prefix}${infer Rest}` ? Rest : never

/** Attributes of a kernel: names of `CUfunction_attribute` without the prefix, such as `'NUM_REGS'`. */
export type KernelAttribute = Exclude<WithoutPrefix<keyof typeof CUfunction_attribute, 'CU_FUNC_ATTRIBUTE_'>, 'MAX'>

const maxDynamicSharedSize = CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

/** The owner of a kernel: the parts of a `Module` or `Library` that its kernels use. */
export interface KernelModule extends Disposable {
  readonly context: Context
  readonly device: Context['device']
  /** Whether the owner, and with it its kernels, was disposed of. */
  readonly disposed: boolean
  dispose(): void
  kernel<const S extends KernelSignature>(name: string, signature: S): Kernel<S>
  /** @internal @throws DisposedError */
  _requireUsable(): void
}

/** @internal A kernel's identity: the handle for launches, the handle for libcuda, and the function in errors. */
export interface KernelIdentity {
  readonly handle: CUfunction
  readonly function: CUfunction
  readonly api: string
}

/**
 * A kernel of a module, with the types of its parameters. Created by `module.kernel()`. The kernel keeps its module
 * alive.
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
export class Kernel<const S extends KernelSignature = KernelSignature> extends PublicObject {
  /** @internal */
  static get [loadedFrom](): string {
    return import.meta.url
  }
  /** The module or library of the kernel. */
  readonly module: KernelModule
  /** Name of the kernel in the image. */
  readonly name: string
  /** Types of the parameters. */
  readonly signature: S
  /** Maximum number of threads per block, which depends on the kernel's registers. */
  readonly maxThreadsPerBlock: number
  readonly #handle: CUfunction
  /** The handle for libcuda. libcudart launches with a different handle. */
  readonly #function: CUfunction
  readonly #halves: U64Halves
  readonly #context: Context
  readonly #requireUsable = (): void => this.module._requireUsable()
  #block: ArgumentBlock
  #nodeBlock: ArgumentBlock | undefined
  /** @internal The sizes of the last graph node. */
  _nodeShape: LaunchShape | undefined
  #shape: LaunchShape
  /** Whether a launch is running. Its getters may launch the kernel again. */
  #isLaunching = false
  /** Current limit of dynamic shared memory in bytes; unknown until a launch needs some. */
  #sharedMemoryLimit = 0

  /** @internal Launch attributes, set by {@link with}. */
  readonly _attributes: EncodedAttributes | undefined
  readonly #exConfig: LaunchExConfig | undefined
  /** @internal Objects that every node of this kernel needs. */
  readonly _ownNeeds: ReadonlyMap<object, () => void>

  private constructor(
    module: KernelModule,
    name: string,
    identity: KernelIdentity,
    signature: S,
    attributes?: EncodedAttributes,
  ) {
    requireMade(identity?.handle, 'Kernel', 'Module.kernel')
    super()
    const { handle, function: ofDriver, api } = identity
    const { context } = module
    this._attributes = attributes
    const needsConfig = attributes !== undefined || context._cuda.name === 'runtime'
    this._ownNeeds = new Map<object, () => void>(attributes?.needs).set(this, this.#requireUsable)
    this.#exConfig = needsConfig ? new LaunchExConfig(attributes ?? EncodedAttributes.of({}, api)) : undefined
    this.module = module
    this.name = name
    this.#handle = handle
    this.#function = ofDriver
    this.#halves = halvesOf(handle)
    this.#context = context
    if (signature === undefined) refuseNone(this, api)
    this.signature = requireSignature(signature, api)
    if (attributes === undefined) checkParameters(this, api)
    this.maxThreadsPerBlock = this.attribute('MAX_THREADS_PER_BLOCK')
    this.#block = new ArgumentBlock(module.context, this.signature, 'Kernel.launch')
    this.#shape = new LaunchShape('Kernel.launch', this.maxThreadsPerBlock)
  }

  /** @internal */
  static _create<const S extends KernelSignature>(
    module: KernelModule,
    name: string,
    identity: KernelIdentity,
    signature: S,
  ): Kernel<S> {
    return new Kernel(module, name, identity, signature)
  }

  /** The handle for launches: the `CUfunction`, or the `cudaKernel_t` of `@shoal/runtime`. @throws DisposedError */
  get handle(): CUfunction {
    this.module._requireUsable()
    return this.#handle
  }

  /** @internal The `CUfunction`. @throws DisposedError */
  get _function(): CUfunction {
    this.module._requireUsable()
    return this.#function
  }

  /**
   * Queues the kernel and returns immediately (`cuLaunchKernel`, `cudaLaunchKernelExC`). Checks sizes and arguments
   * first. The next wait on the stream reports a failure of the running kernel.
   * @throws TypeError, RangeError, DisposedError, StatusError
   *
   * @example
   * axpy.launch({ grid: 4096, block: 256, stream }, 2, x, y, x.length)
   */
  launch(config: LaunchConfig, ...args: KernelArguments<S>): void {
    if (this.#isLaunching) this.#renew()
    this.#isLaunching = true
    const block = this.#block
    const shape = this.#shape
    if (args.length !== block.length) this.#refuseCount(args.length, 'Kernel.launch')
    // Before the arguments: getters of the configuration may dispose of objects in the arguments.
    const stream = shape.set(config)
    if (shape.sharedMemory > this.#sharedMemoryLimit) this.#allowSharedMemory(shape.sharedMemory, 'Kernel.launch')
    const queue = streamHalvesFor(this.#context, stream, 'Kernel.launch')
    if (args.length > 0) block.write(args)
    // Last, because a getter may have disposed of the module.
    this.module._requireUsable()
    this._launch(shape, queue, block)
    if (isCapturing()) this._keepCaptured(queue, args)
    this.#isLaunching = false
  }

  /** @internal Keeps the objects of a captured launch while its graph exists. */
  _keepCaptured(stream: U64Halves, args: readonly unknown[]): void {
    const references = args.filter((_, index) => isReference(this.signature[index]))
    const needs = new Map(this._ownNeeds)
    for (const argument of references) {
      const need = reachNeed(this.#context, argument)
      if (need !== undefined) needs.set(need.key, need.check)
    }
    keepCaptured(this.#context._handle, u64Of(stream), references, needs)
  }

  /**
   * Checks and packs a launch once, for repeated `launch()` calls; `set()` changes one argument. Cheaper than
   * {@link launch} if little changes between runs.
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
   * Returns the same kernel with launch attributes (`cuLaunchKernelEx`, `cudaLaunchKernelExC`): clusters, cooperative
   * launches, priorities, programmatic dependencies and others of `CUlaunchAttribute`. The attributes are checked and
   * encoded once, so launches cost no more. The new kernel has only the given attributes, not the attributes of this
   * kernel.
   * @throws TypeError, RangeError; DisposedError
   *
   * @example
   * const clustered = kernel.with({ clusterDimension: 4 })
   * clustered.launch({ grid: 64, block: 128, stream }, x)
   */
  with(attributes: LaunchAttributes): Kernel<S> {
    const api = 'Kernel.with'
    const identity = { handle: this.handle, function: this.#function, api }
    return new Kernel(this.module, this.name, identity, this.signature, EncodedAttributes.of(attributes, api))
  }

  /**
   * Returns how many clusters of such launches run on the device at the same time (`cuOccupancyMaxActiveClusters`), for
   * a kernel {@link with} a `clusterDimension`.
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
   * Returns the maximum number of blocks in a cluster of such launches (`cuOccupancyMaxPotentialClusterSize`).
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
    const { _function: handle } = this
    const shape = new LaunchShape(api, this.maxThreadsPerBlock)
    shape.set(config)
    const launch = new LaunchExConfig(this._attributes ?? EncodedAttributes.of({}, api))
    launch.set(shape, halvesOf(0n))
    const out = scratch()
    this.#context._callDriver(name, () => call(out, handle, launch.memory))
    return out.i32[0] as number
  }

  /** Returns an attribute (`cuFuncGetAttribute`). @throws TypeError for an unknown name, DisposedError, StatusError */
  attribute(attribute: KernelAttribute): number {
    const code = attributeCode(attribute, 'Kernel.attribute')
    const { _function: handle } = this
    const out = scratch()
    this.#context._callDriver('cuFuncGetAttribute', () => cuFuncGetAttribute(out, code, handle))
    return out.i32[0] as number
  }

  /**
   * Sets an attribute, such as `'PREFERRED_SHARED_MEMORY_CARVEOUT'` (`cuFuncSetAttribute`).
   * @throws TypeError for an unknown name; RangeError, DisposedError; StatusError for a read-only attribute or an
   * invalid value
   */
  setAttribute(attribute: KernelAttribute, value: number): void {
    const api = 'Kernel.setAttribute'
    const code = attributeCode(attribute, api)
    this.#setAttribute(code, requireInteger(value, api, 'value', -(2 ** 31), 2 ** 31 - 1))
    this.#sharedMemoryLimit = 0
  }

  #setAttribute(code: CUfunction_attribute, value: number): void {
    const { _function: handle } = this
    this.#context._callDriver('cuFuncSetAttribute', () => cuFuncSetAttribute(handle, code, value))
  }

  /**
   * Sets whether the kernel prefers more L1 cache or more shared memory, if they share one memory
   * (`cuFuncSetCacheConfig`).
   */
  setCacheConfig(preference: CachePreference): void {
    const config = requireKeyOf(preference, 'Kernel.setCacheConfig', 'preference', cachePreferences) as CUfunc_cache
    const { _function: handle } = this
    this.#context._callDriver('cuFuncSetCacheConfig', () => cuFuncSetCacheConfig(handle, config))
  }

  /**
   * Offset and size of each parameter in bytes, as declared in the image (`cuFuncGetParamInfo`).
   * @throws VersionTooOldError on drivers before 12.4; DisposedError, StatusError
   */
  get parameters(): readonly ParameterInfo[] {
    const { _function: handle } = this
    return parameterInfo(this.#context, 'cuFuncGetParamInfo', (index, offset, size) =>
      cuFuncGetParamInfo(handle, index, offset, size),
    )
  }

  /**
   * Returns how many blocks of the kernel run on one multiprocessor at the same time
   * (`cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`).
   * @param blockSize threads per block, from 1 to 1024
   * @throws TypeError, RangeError, DisposedError, StatusError
   *
   * @example
   * const grid = kernel.maxActiveBlocks(256) * device.attribute('MULTIPROCESSOR_COUNT') // all that run together
   */
  maxActiveBlocks(blockSize: number, options: OccupancyOptions = {}): number {
    const { handle } = this
    return activeBlocksOf(this.#context, handle, blockSize, options, 'Kernel.maxActiveBlocks')
  }

  /**
   * Returns the maximum dynamic shared memory per block, in bytes, if `blockCount` blocks of `blockSize` threads (1 to
   * 1024) are to run on one multiprocessor at the same time (`cuOccupancyAvailableDynamicSMemPerBlock`).
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  availableSharedMemory(blockCount: number, blockSize: number): number {
    const { handle } = this
    return availableSharedMemoryOf(this.#context, handle, blockCount, blockSize, 'Kernel.availableSharedMemory')
  }

  /**
   * Returns the block size that keeps most threads of a multiprocessor busy (the largest of equally good ones), and how
   * many such blocks run on the device at the same time. Like `cuOccupancyMaxPotentialBlockSize`, tries block sizes in
   * steps of a warp with {@link maxActiveBlocks}.
   * @throws TypeError, RangeError, DisposedError, StatusError; errors of `sharedMemory`
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

  /** @internal Returns the checked sizes of a graph node. They never change. */
  _checkNode(config: Omit<LaunchConfig, 'stream'>, argumentCount: number, api: string): LaunchShape {
    this.module._requireUsable()
    if (argumentCount !== this.signature.length) this.#refuseCount(argumentCount, api)
    const shape = new LaunchShape(api, this.maxThreadsPerBlock)
    if (shape.set(config) !== undefined) {
      throw wrongType(api, 'stream', 'left out: a node runs where its graph is launched', config)
    }
    if (shape.sharedMemory > this.#sharedMemoryLimit) this.#allowSharedMemory(shape.sharedMemory, api)
    this._nodeShape = shape
    return shape
  }

  /**
   * @internal Returns the block for a node's arguments, which a graph copies. A getter of the arguments may call this
   * again and then receives a different block.
   */
  _takeNodeBlock(api: string): ArgumentBlock {
    const block = this.#nodeBlock ?? new ArgumentBlock(this.#context, this.signature, api)
    this.#nodeBlock = undefined
    block.api = api
    return block
  }

  /** @internal Returns the block for later nodes. */
  _giveNodeBlock(block: ArgumentBlock): void {
    // The user of a graph orders the stream of its launches.
    block.pending = undefined
    this.#nodeBlock = block
  }

  get [Symbol.toStringTag](): string {
    return 'Kernel'
  }

  override [inspectKey](): string {
    return inspectLine('Kernel', { name: this.name, parameters: this.signature.map(parameterName).join(', ') })
  }

  /**
   * Replaces the block, because a getter of the arguments launches the kernel too: the outer launch, also a failed one,
   * keeps its packed arguments.
   */
  #renew(): void {
    this.#block = new ArgumentBlock(this.#context, this.signature, 'Kernel.launch')
    this.#shape = new LaunchShape('Kernel.launch', this.maxThreadsPerBlock)
  }

  /** @internal */
  _launch(shape: LaunchShape, stream: U64Halves, block: ArgumentBlock): void {
    const config = this.#exConfig
    if (block.pending !== undefined) block.orderBehind(stream)
    if (config !== undefined) {
      this.#launchEx(config, shape, stream, block)
      return
    }
    const { _halves: context } = this.#context
    const status = cuLaunchKernelUnchecked(context, this.#halves, shape, stream, block.pointers)
    if (status !== Status.success) this.#fail(driverError, status, 'cuLaunchKernel', shape)
  }

  #launchEx(config: LaunchExConfig, shape: LaunchShape, stream: U64Halves, block: ArgumentBlock): void {
    config.set(shape, stream)
    const { _halves: context, _cuda: cuda } = this.#context
    const status = config.launch(cuda, context, this.#halves, block.pointers)
    if (status !== Status.success) this.#fail(cuda.error, status, cuda.nameOf('launchKernelEx'), shape)
  }

  #fail(error: typeof driverError, status: number, api: string, shape: LaunchShape): never {
    const fits = status === Status.cooperativeLaunchTooLarge ? this.#blocksThatFit(shape) : ''
    throw error(status, api, `kernel: ${this.name}${fits}`)
  }

  /** Describes the limit of a cooperative launch, all of whose blocks run at the same time. */
  #blocksThatFit({ gridX, gridY, gridZ, blockX, blockY, blockZ, sharedMemory }: LaunchShape): string {
    const threads = blockX * blockY * blockZ
    const perMultiprocessor = this.maxActiveBlocks(threads, { sharedMemory })
    const multiprocessors = this.#context.device.attribute('MULTIPROCESSOR_COUNT')
    return (
      `\nA cooperative launch must have at most ${perMultiprocessor * multiprocessors} blocks of ${threads} threads here ` +
      `(${perMultiprocessor} on each of ${multiprocessors} multiprocessors), not ${gridX * gridY * gridZ}.`
    )
  }

  /** Raises the kernel's limit of dynamic shared memory. The initial limit is 48 KiB minus its static shared memory. */
  #allowSharedMemory(byteLength: number, api: string): void {
    const { device } = this.#context
    const statically = this.attribute('SHARED_SIZE_BYTES')
    const most = device.attribute('MAX_SHARED_MEMORY_PER_BLOCK_OPTIN') - statically
    if (byteLength > most) {
      const expected = `at most ${most}, what device ${device.ordinal} has for this kernel besides its ${statically} static bytes`
      throw outOfRange(api, 'sharedMemory', expected, byteLength)
    }
    const present = this.attribute('MAX_DYNAMIC_SHARED_SIZE_BYTES')
    if (byteLength > present) this.#setAttribute(maxDynamicSharedSize, byteLength)
    this.#sharedMemoryLimit = Math.max(byteLength, present)
  }

  #refuseCount(given: number, api: string): never {
    throw new TypeError(`${api}: args must be the ${this.signature.length} arguments of ${this.name}, not ${given}`)
  }
}
