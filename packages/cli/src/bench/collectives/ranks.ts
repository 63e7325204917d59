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
  /** Memory for the largest message, one buffer per side. */
  readonly send: DeviceBuffer<'u8'>
  readonly recv: DeviceBuffer<'u8'>
  /** Kernels that make and check data; undefined without a check. */
  readonly kernels: PatternKernels | undefined
  /** Objects to dispose of at the end, in this order. */
  readonly owned: readonly Disposable[]
}

// Short waits poll, so that the time of a small operation excludes waking a thread.
const spinMilliseconds = 20

/** Creates the communicators with all processes of the job, and memory for the largest message. */
export async function connect(rankGroup: RankGroup, options: BenchOptions): Promise<Rank[]> {
  // First, so that a device without memory ends this process before other ranks wait for it.
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

/** Allocates with NCCL's allocator if possible, as nccl-tests does: other memory has a different bandwidth. */
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
  // The communicator keeps the signal, so the limit, which is for init only, must not be part of it.
  return Communicator.initRank({ device, rank, worldSize, id, signal: lost, timeout: options.timeout })
}

/**
 * Waits until all work of the ranks is done. Returns its end in nanoseconds of `process.hrtime`.
 *
 * @throws CommunicatorAbortedError if it exceeds the limit or a process has died.
 */
export async function waitForRanks(ranks: readonly Rank[], { timeout, software }: BenchOptions): Promise<bigint> {
  const end = performance.now() + spinMilliseconds
  const waits: Promise<unknown>[] = []
  for (const { communicator, stream } of ranks) {
    let isDone = stream.query()
    while (!isDone && performance.now() < end) isDone = stream.query()
    if (isDone) continue
    const wait = communicator.synchronize(stream, { timeout })
    // Polling would take a processor from the software device.
    if (software) {
      await wait
      continue
    }
    // This wait detects lost ranks. It sees the end of long work up to 200 µs late, so its time is not measured.
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

/** Releases everything; with `abort` without waiting for other ranks, which may be waiting for this one. */
export async function disconnect(ranks: readonly Rank[], how: 'destroy' | 'abort'): Promise<void> {
  await Promise.all(ranks.map(({ communicator }) => communicator[how]()))
  for (const { owned } of ranks) for (const one of owned) one[Symbol.dispose]()
}
