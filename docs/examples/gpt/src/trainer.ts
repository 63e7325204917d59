import type { Device, Stream } from '@shoal/driver'
import { Graph, type GraphExec } from '@shoal/driver/graph'
import type { Communicator } from '@shoal/nccl'
import { initialWeights, type ModelSize, type Training } from './model.js'
import { Network } from './network.js'

/** Steps whose losses stay on the device until they are read. */
const keptLosses = 4096

/** One rank of the training: a step is one launch of a graph, the all-reduce of the gradients included. */
export class Trainer {
  readonly network: Network
  readonly training: Training
  readonly #communicator: Communicator
  readonly #stream: Stream
  readonly #textLength: number
  #graph: { readonly graph: Graph; readonly exec: GraphExec } | undefined
  #done = 0

  /** Puts a text and initial weights, the same for the same seed, on the device. */
  static async create(
    device: Device,
    communicator: Communicator,
    size: ModelSize,
    training: Training,
    text: Int32Array,
  ): Promise<Trainer> {
    if (text.length <= size.context) {
      throw new RangeError(`the text must have more than ${size.context} characters, not ${text.length}`)
    }
    const losses = keptLosses
    const network = await Network.create(device, size, { sequences: training.batch, text: text.length, losses })
    const trainer = new Trainer(network, communicator, training, text.length)
    network.memory.text.reinterpret('i32').copyFrom(text, { stream: trainer.#stream })
    await trainer.restore(initialWeights(size, network.layout, training.seed))
    return trainer
  }

  private constructor(network: Network, communicator: Communicator, training: Training, textLength: number) {
    this.network = network
    this.training = training
    this.#communicator = communicator
    this.#stream = network.device.createStream({ nonBlocking: true })
    this.#textLength = textLength
  }

  get stream(): Stream {
    return this.#stream
  }

  /** Steps that were done. */
  get done(): number {
    return this.#done
  }

  /** Queues one step, call by call. */
  queueStep(allReduce = this.#allReduce): void {
    const { network, training } = this
    const { rank, worldSize } = this.#communicator
    const { batch, seed, rate, decay, warmup, until } = training
    network.queuePick(this.#stream, seed, rank * batch, this.#textLength)
    network.queueForward(this.#stream, batch)
    network.queueBackward(this.#stream, worldSize)
    allReduce()
    network.queueUpdate(this.#stream, rate, decay, warmup, until)
  }

  /** Does some steps and gives their losses, over all ranks. Nothing is waited for between them. */
  async train(steps: number): Promise<Float32Array> {
    const losses = new Float32Array(steps)
    for (let first = 0; first < steps; first += keptLosses) {
      const count = Math.min(keptLosses, steps - first)
      await this.launchSteps(count)
      const kept = await this.network.memory.losses.toArray({ stream: this.#stream })
      for (let index = 0; index < count; index += 1) {
        losses[first + index] = kept[(this.#done - count + index) % keptLosses] as number
      }
    }
    return losses
  }

  /** Does some steps, and waits for their end. */
  async launchSteps(steps: number): Promise<void> {
    const { exec } = (this.#graph ??= await this.#capture())
    for (let step = 0; step < steps; step += 1) exec.launch(this.#stream)
    // Not the stream alone: NCCL lets the stream go on when a rank was lost.
    await this.#communicator.synchronize(this.#stream)
    this.#done += steps
  }

  /** The loss of the last step. */
  async lastLoss(): Promise<number> {
    const { losses } = this.network.memory
    const at = (this.#done + keptLosses - 1) % keptLosses
    return (await losses.slice(at, at + 1).toArray({ stream: this.#stream }))[0] as number
  }

  /** What a checkpoint has: weights, averages, and the number of steps as the bits of the last element. */
  async state(): Promise<Float32Array> {
    return this.network.memory.state.toArray({ stream: this.#stream })
  }

  /** Continues from a saved state, or starts with weights alone. */
  async restore(values: Float32Array): Promise<void> {
    const { memory } = this.network
    memory.state.fill(0, { stream: this.#stream })
    memory.state.slice(0, values.length).copyFrom(values, { stream: this.#stream })
    await this.#stream.synchronize()
    const [done] = await memory.step.reinterpret('i32').toArray()
    this.#done = done as number
  }

  /** What the model says of the character behind the last of these. */
  async logits(tokens: readonly number[]): Promise<Float32Array> {
    const { memory, size } = this.network
    const { context, vocabulary } = size
    const seen = tokens.slice(-context)
    memory.tokens.reinterpret('i32').slice(0, seen.length).copyFrom(Int32Array.from(seen), { stream: this.#stream })
    this.network.queueForward(this.#stream, 1)
    const last = (seen.length - 1) * vocabulary
    return memory.logits.slice(last, last + vocabulary).toArray({ stream: this.#stream })
  }

  dispose(): void {
    this.#graph?.exec.dispose()
    this.#graph?.graph.dispose()
    this.#stream.dispose()
    this.network.dispose()
  }

  readonly #allReduce = (): void => {
    const { gradients } = this.network.memory
    this.#communicator.allReduce(gradients, gradients, { op: 'sum', stream: this.#stream })
  }

  async #capture(): Promise<{ readonly graph: Graph; readonly exec: GraphExec }> {
    // The first one connects the ranks, which cannot be captured.
    this.#allReduce()
    await this.#communicator.synchronize(this.#stream)
    const graph = Graph.capture(this.#stream, () => this.queueStep())
    graph.keep(this.network.memory.all)
    return { graph, exec: graph.instantiate() }
  }
}
