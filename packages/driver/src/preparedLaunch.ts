import { requireInteger } from '@shoal/cuda-base'
import type { CUstream } from '@shoal/cuda-sys/driver'
import type { StreamLike } from '@shoal/types'
import { ArgumentBlock } from './argumentBlock.js'
import type { Kernel } from './kernel.js'
import type { LaunchShape } from './launch.js'
import type { KernelArgument, KernelArguments, KernelSignature } from './signature.js'
import { streamFor } from './stream.js'

/** A launch whose sizes and arguments are checked and packed already. Made by `kernel.prepare()`. */
export class PreparedLaunch<S extends KernelSignature = KernelSignature> {
  readonly kernel: Kernel<S>
  readonly #shape: LaunchShape
  readonly #stream: StreamLike | undefined
  readonly #block: ArgumentBlock
  /** Arguments that are memory, which must still be there at each launch; the rest is undefined. */
  readonly #memory: unknown[]
  readonly #hasMemory: boolean

  private constructor(kernel: Kernel<S>, shape: LaunchShape, stream: StreamLike | undefined, args: KernelArguments<S>) {
    this.kernel = kernel
    this.#shape = shape
    this.#stream = stream
    this.#block = new ArgumentBlock(kernel.module.context, kernel.signature)
    this.#memory = new Array(args.length).fill(undefined)
    this.#hasMemory = kernel.signature.includes('ptr')
    for (let index = 0; index < args.length; index += 1) this.#write(index, args[index])
    this.#handle()
  }

  /** @internal */
  static _create<S extends KernelSignature>(
    kernel: Kernel<S>,
    shape: LaunchShape,
    stream: StreamLike | undefined,
    args: KernelArguments<S>,
  ): PreparedLaunch<S> {
    return new PreparedLaunch(kernel, shape, stream, args)
  }

  /** Changes one argument of the launches that follow. @throws TypeError, RangeError, DisposedError */
  set<I extends number & keyof S>(index: I, value: KernelArgument<S[I]>): this {
    requireInteger(index, 'index', 0, this.#block.length - 1)
    this.#write(index, value)
    return this
  }

  /** Queues the kernel again (`cuLaunchKernel`). @throws DisposedError when an argument is gone, StatusError. */
  launch(): void {
    this.kernel.module._requireUsable()
    const block = this.#block
    if (this.#hasMemory) {
      const memory = this.#memory
      for (let index = 0; index < memory.length; index += 1) {
        const value = memory[index]
        if (value !== undefined) block.recheck(index, value)
      }
    }
    this.kernel._launch(this.#shape, this.#handle(), block)
  }

  #handle(): CUstream {
    return streamFor(this.kernel.module.context, this.#stream)
  }

  #write(index: number, value: unknown): void {
    this.#block.write(index, value)
    this.#memory[index] =
      typeof value === 'object' && value !== null && this.kernel.signature[index] === 'ptr' ? value : undefined
  }
}
