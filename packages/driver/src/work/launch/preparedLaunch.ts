import {
  inspectKey,
  inspectLine,
  loadedFrom,
  PublicObject,
  requireInteger,
  requireMade,
  type StreamArgument,
} from '@shoal/types'
import { isCapturing } from '../../core/context/capturing.js'
import { streamHalvesFor } from '../../core/stream/stream.js'
import type { U64Halves } from '../../core/u64Halves.js'
import { ArgumentBlock } from './argumentBlock.js'
import type { Kernel } from './kernel.js'
import type { LaunchShape } from './launchConfig.js'
import { isReference, type KernelArgument, type KernelArguments, type KernelSignature } from './signature.js'

/**
 * A launch with checked and packed sizes and arguments. Created by `kernel.prepare()`.
 *
 * @example
 * ```ts
 * const step = axpy.prepare({ grid: 4096, block: 256, stream }, 2, x, y, x.length)
 * for (let i = 0; i < 1000; i += 1) step.launch()
 * step.set(0, 0.5).launch() // with another factor
 * ```
 */
export class PreparedLaunch<S extends KernelSignature = KernelSignature> extends PublicObject {
  /** @internal */
  static get [loadedFrom](): string {
    return import.meta.url
  }
  /** The kernel of the launch. */
  readonly kernel: Kernel<S>
  readonly #shape: LaunchShape
  readonly #stream: StreamArgument | undefined
  readonly #block: ArgumentBlock
  /** Memory arguments, which must still exist at each launch; other entries are undefined. */
  readonly #memory: unknown[]
  readonly #hasMemory: boolean

  private constructor(
    kernel: Kernel<S>,
    shape: LaunchShape,
    stream: StreamArgument | undefined,
    args: KernelArguments<S>,
  ) {
    requireMade(args, 'PreparedLaunch', 'Kernel.prepare', 'object')
    super()
    this.kernel = kernel
    this.#shape = shape
    this.#stream = stream
    this.#block = new ArgumentBlock(kernel.module.context, kernel.signature, 'Kernel.prepare')
    this.#memory = new Array(args.length).fill(undefined)
    this.#hasMemory = kernel.signature.some(isReference)
    for (let index = 0; index < args.length; index += 1) this.#write(index, args[index])
    this.#streamHalves('Kernel.prepare')
  }

  /** @internal */
  static _create<S extends KernelSignature>(
    kernel: Kernel<S>,
    shape: LaunchShape,
    stream: StreamArgument | undefined,
    args: KernelArguments<S>,
  ): PreparedLaunch<S> {
    return new PreparedLaunch(kernel, shape, stream, args)
  }

  /** Changes one argument for later launches. @throws TypeError, RangeError, DisposedError */
  set<I extends number & keyof S>(index: I, value: KernelArgument<S[I]>): this {
    requireInteger(index, 'PreparedLaunch.set', 'index', 0, this.#block.length - 1)
    this.#block.api = 'PreparedLaunch.set'
    this.#write(index, value)
    return this
  }

  /**
   * Queues the kernel again and returns immediately (`cuLaunchKernel`).
   * @throws DisposedError when the module, the stream or a memory argument is gone; StatusError
   */
  launch(): void {
    this.kernel.module._requireUsable()
    const block = this.#block
    block.api = 'PreparedLaunch.launch'
    if (this.#hasMemory) {
      // Pending work from the time of set() is complete, or the memory reports it again.
      if (block.pending !== undefined) block.pending = undefined
      const memory = this.#memory
      for (let index = 0; index < memory.length; index += 1) {
        const value = memory[index]
        if (value !== undefined) block.recheck(index, value)
      }
    }
    const stream = this.#streamHalves('PreparedLaunch.launch')
    this.kernel._launch(this.#shape, stream, block)
    if (isCapturing()) this.kernel._keepCaptured(stream, this.#memory)
  }

  get [Symbol.toStringTag](): string {
    return 'PreparedLaunch'
  }

  override [inspectKey](): string {
    const { gridX, gridY, gridZ, blockX, blockY, blockZ } = this.#shape
    const grid = `${gridX} × ${gridY} × ${gridZ}`
    return inspectLine('PreparedLaunch', { kernel: this.kernel.name, grid, block: `${blockX} × ${blockY} × ${blockZ}` })
  }

  #streamHalves(api: string): U64Halves {
    return streamHalvesFor(this.kernel.module.context, this.#stream, api)
  }

  #write(index: number, value: unknown): void {
    this.#block.write([value], index)
    this.#memory[index] =
      typeof value === 'object' && value !== null && isReference(this.kernel.signature[index]) ? value : undefined
  }
}
