import { NativeMemory } from '@shoal/ffi'
import type { EncodedAttributes } from '../../core/attributes/launchAttributes.js'
import type { CudaLibrary } from '../../core/calls/cudaLibrary.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import type { LaunchShape } from './launchConfig.js'

// Size of CUlaunchConfig: seven sizes, the stream, the attributes and their number.
const configBytes = 56
const stream32 = 8
const attributes64 = 5
const count32 = 12

/**
 * The configuration of `cuLaunchKernelEx` and `cudaLaunchKernelExC` for one kernel with one set of attributes. Each
 * launch overwrites it.
 */
export class LaunchExConfig {
  readonly memory: NativeMemory
  readonly #address: U64Halves
  readonly #words: Uint32Array
  readonly #attributes: EncodedAttributes

  constructor(attributes: EncodedAttributes) {
    this.memory = NativeMemory.allocate(configBytes)
    this.#address = halvesOf(this.memory.address)
    this.#words = new Uint32Array(this.memory.buffer, 0, configBytes / 4)
    this.#attributes = attributes
    this.memory.u64[attributes64] = attributes.memory.address
    this.#words[count32] = attributes.count
  }

  /** Stores the sizes and the stream. */
  set(shape: LaunchShape, stream: U64Halves): void {
    const words = this.#words
    words[0] = shape.gridX
    words[1] = shape.gridY
    words[2] = shape.gridZ
    words[3] = shape.blockX
    words[4] = shape.blockY
    words[5] = shape.blockZ
    words[6] = shape.sharedMemory
    words[stream32] = stream.low
    words[stream32 + 1] = stream.high
  }

  /**
   * Launches with the function of `cuda`'s library and returns the status. @throws DisposedError when an object of the
   * attributes is gone
   */
  launch(cuda: CudaLibrary, context: U64Halves, kernel: U64Halves, parameters: U64Halves): number {
    this.#attributes.check()
    return cuda.unchecked.launchKernelEx(context, this.#address, kernel, parameters)
  }
}
