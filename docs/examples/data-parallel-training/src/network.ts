import { fileURLToPath } from 'node:url'
import { type Device, DeviceBuffer, Module, type Stream } from '@shoal/driver'
import { type Examples, hidden, parameterCount } from './reference.js'

const code = fileURLToPath(new URL('../kernels/network.ptx', import.meta.url))
/** As `threads` in network.cu. */
const threads = 128

/** The network on a device, the examples that this rank has, and the kernels over them. */
export class Network {
  /** Weights and biases of the hidden layer, weights and bias of the output. */
  readonly parameters: DeviceBuffer<'f64'>
  /** The gradient by every parameter, summed over the examples; behind it, the sum of the squared errors. */
  readonly sums: DeviceBuffer<'f64'>
  readonly #examples: number
  readonly #kernels: ReturnType<typeof kernelsOf>
  readonly #x: DeviceBuffer<'f64'>
  readonly #y: DeviceBuffer<'f64'>
  readonly #activations: DeviceBuffer<'f64'>
  readonly #errors: DeviceBuffer<'f64'>
  readonly #owned: Disposable[] = []

  static async create(device: Device, parameters: Float64Array, part: Examples): Promise<Network> {
    return new Network(device, await Module.loadFile(device, code), parameters, part)
  }

  private constructor(device: Device, module: Module, parameters: Float64Array, { x, y }: Examples) {
    const own = <T extends Disposable>(object: T): T => {
      this.#owned.push(object)
      return object
    }
    this.#kernels = kernelsOf(own(module))
    this.#examples = y.length
    this.parameters = own(DeviceBuffer.from(device, parameters))
    this.sums = own(DeviceBuffer.allocate(device, 'f64', parameterCount + 1))
    this.#x = own(DeviceBuffer.from(device, x))
    this.#y = own(DeviceBuffer.from(device, y))
    this.#activations = own(DeviceBuffer.allocate(device, 'f64', y.length * hidden))
    this.#errors = own(DeviceBuffer.allocate(device, 'f64', y.length))
  }

  /** Queues the computing of `sums` from the parameters as they are then. */
  computeGradient(stream: Stream): void {
    const { parameters, sums } = this
    const { forward, gradientSums } = this.#kernels
    const count = this.#examples
    const grid = Math.ceil(count / threads)
    forward.launch(
      { grid, block: threads, stream },
      parameters,
      this.#x,
      this.#y,
      this.#activations,
      this.#errors,
      count,
    )
    const config = { grid: parameterCount + 1, block: threads, stream }
    gradientSums.launch(config, parameters, this.#x, this.#activations, this.#errors, sums, count)
  }

  /** Queues a step along `sums`, which are of `examples`; the mean squared error before it goes to `losses[step]`. */
  descend(stream: Stream, losses: DeviceBuffer<'f64'>, step: number, examples: number, rate: number): void {
    const config = { grid: 1, block: threads, stream }
    this.#kernels.descend.launch(config, this.parameters, this.sums, losses, step, examples, rate)
  }

  [Symbol.dispose](): void {
    for (const object of this.#owned.splice(0).reverse()) object[Symbol.dispose]()
  }
}

function kernelsOf(module: Module) {
  return {
    forward: module.kernel('forward', ['ptr', 'ptr', 'ptr', 'ptr', 'ptr', 'i32']),
    gradientSums: module.kernel('gradientSums', ['ptr', 'ptr', 'ptr', 'ptr', 'ptr', 'i32']),
    descend: module.kernel('descend', ['ptr', 'ptr', 'ptr', 'i32', 'i32', 'f64']),
  }
}
