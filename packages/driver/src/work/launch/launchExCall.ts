import { NativeMemory } from '@shoal/ffi'
import type { EncodedAttributes } from '../../core/attributes/launchAttributes.js'
import type { CudaLibrary } from '../../core/calls/cudaLibrary.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import type { LaunchShape } from './launchConfig.js'

// CUlaunchConfig: seven sizes, the stream, the attributes and their number.
const configBytes = 56
const stream32 = 8
const attributes64 = 5
const count32 = 12

/**
 * What `cuLaunchKernelEx` and `cudaLaunchKernelExC` read, for one kernel with one set of attributes. It is filled anew
 * for each launch.
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

  /** Takes over sizes and stream. */
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
   * Launches by that of the two which `cuda` has. Returns the status. @throws DisposedError when something that the
   * attributes name is gone
   */
  launch(cuda: CudaLibrary, context: U64Halves, kernel: U64Halves, parameters: U64Halves): number {
    this.#attributes.check()
    return cuda.unchecked.launchKernelEx(context, this.#address, kernel, parameters)
  }
}
