import {
  type CUfunction,
  type CUmodule,
  type CUstream,
  cuLaunchKernel,
  cuMemFreeHost,
  cuMemHostAlloc,
  cuModuleGetFunction,
  cuModuleLoadData,
  cuModuleUnload,
  cuStreamCreate,
  cuStreamDestroy,
  cuStreamSynchronize,
} from '@shoal/cuda-sys/driver'
import { type HostView, hostView, NativeMemory, offThread } from '@shoal/ffi'
import type { WaitOptions } from '@shoal/types'
import { checkCuda } from '../errors.js'
import type { CallQueue } from '../queue/callQueue.js'
import { type KernelOperation, kernelName, kernelOperations, kernelSource } from './kernelSource.js'

const slotBytes = 8
/** Most operations in flight. */
const slotCount = 4096
const portableAndMapped = 3
const nonBlocking = 1
const parameterBytes = 64

/** Operands of one operation, as 64-bit patterns. */
export interface KernelOperands {
  readonly operation: KernelOperation
  readonly bits: 32 | 64
  readonly target: bigint
  readonly value: bigint
  readonly expected: bigint
}

/** Resources that the end of the session frees. */
interface Parts {
  readonly module: CUmodule
  readonly stream: CUstream
  readonly functions: ReadonlyMap<string, CUfunction>
  /** Page-locked memory for results, which kernels write and JavaScript reads. */
  readonly results: bigint
  readonly view: HostView
}

/**
 * Atomics by kernels of one thread.
 *
 * NVIDIA's library implements no host atomics: its functions print a line, do nothing and return 0. Kernels reach the
 * memory of every PE that this process can address.
 */
export class AtomicKernels {
  readonly #queue: CallQueue
  readonly #parts: Parts
  readonly #elements: BigUint64Array
  /** Unused result slots. */
  readonly #free: number[] = Array.from({ length: slotCount }, (_, index) => index)
  /** Parameters of synchronous operations, of which only one runs at a time. */
  readonly #syncParameters: NativeMemory = NativeMemory.allocate(parameterBytes)

  private constructor(queue: CallQueue, parts: Parts) {
    this.#queue = queue
    this.#parts = parts
    this.#elements = new BigUint64Array(parts.view.buffer)
  }

  /** Compiles the kernels for the device of the session, on the session's thread. */
  static async load(queue: CallQueue): Promise<AtomicKernels> {
    const api = 'Session.init'
    const names = kernelOperations.flatMap((operation) => [kernelName(operation, 32), kernelName(operation, 64)])
    const source = Buffer.from(`${kernelSource()}\0`, 'latin1')
    const image = NativeMemory.allocate(source.byteLength)
    const out = NativeMemory.allocate(8 * (names.length + 3))
    try {
      image.bytes.set(source)
      const [loaded] = await queue.run(api, () => cuModuleLoadData(out, image), { keep: [out, image] })
      checkCuda(loaded, 'cuModuleLoadData')
      const module = out.u64[0] as CUmodule
      const find = (): void => {
        cuStreamCreate(out.address + 8n, nonBlocking)
        // Allocated now: later it may wait for work on the device, which may be a barrier.
        cuMemHostAlloc(out.address + 16n, slotBytes * slotCount, portableAndMapped)
        for (const [index, name] of names.entries()) {
          cuModuleGetFunction(out.address + BigInt(24 + 8 * index), module, name)
        }
      }
      const statuses = await queue.run(api, find, { keep: [out] })
      for (const [index, status] of statuses.entries()) {
        checkCuda(status, ['cuStreamCreate', 'cuMemHostAlloc'][index] ?? 'cuModuleGetFunction')
      }
      const results = out.u64[2] as bigint
      return new AtomicKernels(queue, {
        module,
        stream: out.u64[1] as CUstream,
        functions: new Map(names.map((name, index) => [name, out.u64[index + 3] as CUfunction])),
        results,
        view: hostView(results, slotBytes * slotCount),
      })
    } finally {
      queue.free(image)
      queue.free(out)
    }
  }

  /** Runs one operation in its turn. Returns the bits of the previous value. */
  async run(operands: KernelOperands, api: string, wait: WaitOptions): Promise<bigint> {
    const refusal = this.#queue.refusal(api, wait)
    if (refusal !== undefined) throw refusal
    const slot = this.#takeSlot(api)
    const memory = NativeMemory.allocate(parameterBytes)
    try {
      const parameters = pack(memory, operands, this.#parts.results + BigInt(slotBytes * slot))
      const record = (): void => {
        this.#start(operands, parameters)
        cuStreamSynchronize(this.#parts.stream)
      }
      const [launched, finished] = await this.#queue.run(api, record, { wait, keep: [memory] })
      checkCuda(launched, 'cuLaunchKernel')
      checkCuda(finished, 'cuStreamSynchronize')
    } finally {
      this.#queue.free(memory)
    }
    // A failed or cancelled operation keeps its slot, because its kernel may still write there.
    this.#free.push(slot)
    return this.#elements[slot] as bigint
  }

  runSync(operands: KernelOperands, api: string): bigint {
    const slot = this.#takeSlot(api)
    const parameters = pack(this.#syncParameters, operands, this.#parts.results + BigInt(slotBytes * slot))
    let isQueued = false
    try {
      const launched = this.#queue.callSync(api, () => this.#start(operands, parameters))
      isQueued = true
      checkCuda(launched, 'cuLaunchKernel')
      const finished = this.#queue.callSync(api, () => cuStreamSynchronize(this.#parts.stream))
      checkCuda(finished, 'cuStreamSynchronize')
    } finally {
      if (!isQueued) this.#free.push(slot)
    }
    this.#free.push(slot)
    return this.#elements[slot] as bigint
  }

  /** Records the calls that unload the kernels, the last ones on the session's thread before NVSHMEM ends. */
  recordUnload(): void {
    cuStreamDestroy(this.#parts.stream)
    cuModuleUnload(this.#parts.module)
  }

  /** Frees the other resources, after all operations have completed and their results were read. */
  async release(context: bigint): Promise<void> {
    this.#free.length = 0
    this.#syncParameters.dispose()
    const { results, view } = this.#parts
    view.detach()
    const [status] = await offThread({ context }, () => cuMemFreeHost(results))
    checkCuda(status, 'cuMemFreeHost')
  }

  #start({ operation, bits }: KernelOperands, parameters: bigint): number {
    const { functions, stream } = this.#parts
    const call = functions.get(kernelName(operation, bits)) as CUfunction
    return cuLaunchKernel(call, 1, 1, 1, 1, 1, 1, 0, stream, parameters, null)
  }

  #takeSlot(api: string): number {
    const slot = this.#free.pop()
    if (slot !== undefined) return slot
    throw new RangeError(`${api}: ${slotCount} atomics are in flight, which is the maximum; await some of them`)
  }
}

/** Writes the four parameters, followed by their addresses, which the driver takes. */
function pack({ address, u64 }: NativeMemory, operands: KernelOperands, result: bigint): bigint {
  u64[0] = operands.target
  u64[1] = operands.value
  u64[2] = operands.expected
  u64[3] = result
  for (let parameter = 0; parameter < 4; parameter += 1) u64[4 + parameter] = address + BigInt(8 * parameter)
  return address + 32n
}
