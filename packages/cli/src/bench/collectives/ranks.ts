import { type Device, DeviceBuffer, type Stream } from '@shoal/driver'
import { nextTurn } from '@shoal/ffi'
import { Communicator, NcclMemory, ncclSupports, UniqueId } from '@shoal/nccl'
import { Feature } from '@shoal/types'
import type { BenchOptions } from '../options.js'
import { PatternKernels } from '../patternKernels.js'
import type { RankGroup } from '../rankGroup.js'
import { patternBytes } from './data.js'

/** A rank that this process drives. */
export interface Rank {
  readonly rank: number
  readonly communicator: Communicator
  readonly stream: Stream
  /** Bytes of the largest message, for either side. */
  readonly send: DeviceBuffer<'u8'>
  readonly recv: DeviceBuffer<'u8'>
  /** Make and check data; undefined where nothing is checked. */
  readonly kernels: PatternKernels | undefined
  /** What is given back at the end, in this order. */
  readonly owned: readonly Disposable[]
}

// Short waits poll, so that the time of a small operation does not include waking a thread.
const spinMilliseconds = 20

/** Makes the communicators, with all other processes of the job, and memory for the largest message. */
export async function connect(rankGroup: RankGroup, options: BenchOptions): Promise<Rank[]> {
  // First, so that a device without room ends this process before other ranks wait for it.
  const prepared = []
  for (const { rank, device } of rankGroup.ranks) {
    const stream = device.createStream({ nonBlocking: true })
    const kernels = options.check ? new PatternKernels(device, stream, patternBytes) : undefined
    const [send, recv] = [
      await messageMemory(device, options.sweep.most),
      await messageMemory(device, options.sweep.most),
    ]
    const owned = [...send, ...recv, ...(kernels === undefined ? [] : [kernels]), stream]
    prepared.push({ rank, stream, send: send[0], recv: recv[0], kernels, owned })
  }
  const communicators = rankGroup.isRank
    ? [await joinOthers(rankGroup, options)]
    : await Communicator.initAll(rankGroup.ranks.map(({ device }) => device))
  return prepared.map((one, index) => ({ ...one, communicator: communicators[index] as Communicator }))
}

/** As nccl-tests has it: of NCCL's allocator where there is one. Memory of another kind has another bandwidth. */
async function messageMemory(device: Device, bytes: number): Promise<readonly [DeviceBuffer<'u8'>, ...Disposable[]]> {
  if (!ncclSupports(Feature.ncclMemory)) return [DeviceBuffer.zeros(device, 'u8', bytes)]
  const memory = await NcclMemory.allocate(device, bytes)
  const buffer = DeviceBuffer.view(device, memory, 'u8')
  buffer.fillSync(0)
  return [buffer, memory]
}

async function joinOthers(rankGroup: RankGroup, options: BenchOptions): Promise<Communicator> {
  const [{ rank, device }] = rankGroup.ranks as [RankGroup['ranks'][number]]
  const { worldSize, lost } = rankGroup
  const id = UniqueId.fromBytes(await rankGroup.share('nccl', () => UniqueId.create().toBytes()))
  // The signal stays with the communicator, so the time limit, which is one of the init, is not part of it.
  return Communicator.initRank({ device, rank, worldSize, id, signal: lost, timeout: options.timeout })
}

/**
 * Waits until all work of the ranks is done, and gives the moment at which it was, in nanoseconds of `process.hrtime`.
 * @throws CommunicatorAbortedError when it takes too long or a process has died.
 */
export async function waitForRanks(ranks: readonly Rank[], { timeout, software }: BenchOptions): Promise<bigint> {
  const end = performance.now() + spinMilliseconds
  const waits: Promise<unknown>[] = []
  for (const { communicator, stream } of ranks) {
    let isDone = stream.query()
    while (!isDone && performance.now() < end) isDone = stream.query()
    if (isDone) continue
    const wait = communicator.synchronize(stream, { timeout })
    // Who asks all the time takes a processor away from the software device.
    if (software) {
      await wait
      continue
    }
    // It tells of lost ranks, and notices the end of long work up to 200 µs late: that is no part of the figure.
    waits.push(wait)
    let isOver = false
    const over = (): void => {
      isOver = true
    }
    wait.then(over, over)
    while (!isOver && !stream.query()) await nextTurn()
  }
  const done = process.hrtime.bigint()
  await Promise.all(waits)
  return done
}

/** Gives everything back; with `abort` without waiting for other ranks, which may be waiting for this one. */
export async function disconnect(ranks: readonly Rank[], how: 'destroy' | 'abort'): Promise<void> {
  await Promise.all(ranks.map(({ communicator }) => communicator[how]()))
  for (const { owned } of ranks) for (const one of owned) one[Symbol.dispose]()
}
