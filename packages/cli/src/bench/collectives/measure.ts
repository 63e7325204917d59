import type { DeviceBuffer } from '@shoal/driver'
import { dtypeInfo } from '@shoal/types'
import { UsageError } from '../../command.js'
import type { CollectiveRow, Figures } from '../figures.js'
import { type BenchOptions, type BenchType, firstRunsOf, type Reduction } from '../options.js'
import type { PatternKernels } from '../patternKernels.js'
import type { RankGroup } from '../rankGroup.js'
import { sizesOf } from '../size.js'
import { BenchData } from './data.js'
import { countFor, type Operation, prepareStart, type Setting } from './operations.js'
import { connect, disconnect, type Rank, waitForRanks } from './ranks.js'

/** One combination of type, reduction and root. */
export interface Variant {
  readonly type: BenchType
  readonly op: Reduction
  readonly root: number
}

/** Measures an operation over all sizes of all variants; calls `onRow` after each row. */
export async function measureCollective(
  operation: Operation,
  variants: readonly Variant[],
  rankGroup: RankGroup,
  options: BenchOptions,
  onRow: (row: CollectiveRow) => void,
): Promise<CollectiveRow[]> {
  const ranks = await connect(rankGroup, options)
  const rows: CollectiveRow[] = []
  try {
    const bench = new CollectiveBench(operation, ranks, rankGroup, options)
    for (const variant of variants) {
      await bench.measureVariant(variant, (row) => {
        rows.push(row)
        onRow(row)
      })
    }
  } catch (error) {
    // The first error is thrown; later errors are only printed.
    await disconnect(ranks, 'abort').catch((problem: unknown) => console.error(`shoal bench: ${String(problem)}`))
    throw error
  }
  await disconnect(ranks, 'destroy')
  return rows
}

/**
 * Returns every requested combination of type, reduction and root.
 *
 * @throws UsageError for a root outside the job, and for sizes smaller than one element per part.
 */
export function variantsOf(operation: Operation, worldSize: number, options: BenchOptions): Variant[] {
  if (operation.rooted && options.root >= worldSize)
    throw new UsageError(`--root ${options.root}: there ${worldSize === 1 ? 'is one rank' : `are ${worldSize} ranks`}`)
  const { most } = options.sweep
  const parts = Math.max(operation.sendParts(worldSize), operation.recvParts(worldSize))
  const large = options.types.find((type) => most < parts * dtypeInfo(type).bytes)
  if (large !== undefined) {
    const least = `${parts * dtypeInfo(large).bytes} bytes`
    throw new UsageError(`--max-bytes ${most} is less than one element of ${large} for each rank: ${least}`)
  }
  const everyRoot = Array.from({ length: worldSize }, (_, rank) => rank)
  const roots = !operation.rooted ? [0] : options.root === -1 ? everyRoot : [options.root]
  const ops: readonly Reduction[] = operation.reduces ? options.reductions : ['sum']
  return options.types.flatMap((type) => ops.flatMap((op) => roots.map((root) => ({ type, op, root }))))
}

/** One measurement. */
interface Task {
  readonly type: BenchType
  readonly setting: Setting
  readonly isInPlace: boolean
  readonly data: BenchData
}

/** The two sides of a rank, as element buffers. */
interface Operands {
  readonly rank: Rank
  readonly send: DeviceBuffer
  readonly recv: DeviceBuffer
}

/**
 * Milliseconds of GPU work before a measurement; longer before the first size, so that V8 has compiled everything.
 *
 * After 50 ms of large operations, each operation on an H200 takes 1 % longer than in a short run.
 */
const firstWarmUpMilliseconds = 50
const warmUpMilliseconds = 5
/** Number of calls that estimate how many warm-ups to make. */
const warmUpSample = 5
const mostWarmUps = 5000

/** From this many bytes on, it matters whether an operation's data is in the cache of the GPU. */
const leastMoved = 65_536
const mostPlaces = 64
const placeAlignment = 512

/**
 * Returns the offsets that the calls of a loop cycle through.
 *
 * Programs do not reduce the same bytes repeatedly, and nccl-tests moves through memory in the same way.
 */
export function placesFor(bytes: number, most: number): number[] {
  const step = Math.ceil(bytes / placeAlignment) * placeAlignment
  const count = bytes < leastMoved ? 1 : Math.max(1, Math.min(mostPlaces, Math.floor(most / step)))
  return Array.from({ length: count }, (_, index) => index * step)
}

class CollectiveBench {
  readonly #operation: Operation
  readonly #ranks: readonly Rank[]
  readonly #rankGroup: RankGroup
  readonly #options: BenchOptions
  /** Parts of the larger side. */
  readonly #parts: number
  /** Whether the first in-place and out-of-place measurements have run. */
  readonly #hasRun = new Set<boolean>()

  constructor(operation: Operation, ranks: readonly Rank[], rankGroup: RankGroup, options: BenchOptions) {
    this.#operation = operation
    this.#ranks = ranks
    this.#rankGroup = rankGroup
    this.#options = options
    this.#parts = Math.max(operation.sendParts(rankGroup.worldSize), operation.recvParts(rankGroup.worldSize))
  }

  async measureVariant({ type, op, root }: Variant, onRow: (row: CollectiveRow) => void): Promise<void> {
    const { worldSize } = this.#rankGroup
    const { inPlace, sweep } = this.#options
    const { bytes } = dtypeInfo(type)
    const sizes = sizesOf(sweep).map((size) => countFor(this.#operation, worldSize, size, bytes))
    const counts = new Set(sizes.filter((count) => count > 0))
    const data = new BenchData(type, op, worldSize, Math.max(...counts))
    for (const count of counts) {
      const setting = { worldSize, op, root, count }
      const measure = (isInPlace: boolean): Promise<Figures> => this.#measure({ type, setting, isInPlace, data })
      onRow({
        operation: this.#operation.name,
        bytes: count * this.#parts * bytes,
        count,
        dtype: type,
        op: this.#operation.reduces ? op : null,
        root: this.#operation.rooted ? root : null,
        outOfPlace: inPlace === 'in' ? null : await measure(false),
        inPlace: inPlace === 'out' || this.#operation.inPlace === undefined ? null : await measure(true),
      })
    }
  }

  async #measure(task: Task): Promise<Figures> {
    const { iterations, warmUps, check } = this.#options
    const bytes = task.setting.count * this.#parts * dtypeInfo(task.type).bytes
    const places = placesFor(bytes, this.#options.sweep.most)
    const operands = places.map((place) => this.#ranks.map((rank) => this.#operandsOf(task, rank, place)))
    const starts = operands.map((each) => this.#startOf(task, each))
    const [first] = starts as [() => void]
    let turn = 0
    const next = (): void => {
      ;(starts[turn] as () => void)()
      turn = (turn + 1) % starts.length
    }
    const once = starts.length === 1 ? first : next
    const isFirst = !this.#hasRun.has(task.isInPlace)
    const before = warmUps + (isFirst ? firstRunsOf(bytes) : 0)
    this.#hasRun.add(task.isInPlace)
    for (let i = 0; i < before; i += 1) once()
    await this.#wait()
    await this.#warmUp(once, isFirst ? firstWarmUpMilliseconds : warmUpMilliseconds)
    await this.#rankGroup.barrier()
    const start = process.hrtime.bigint()
    for (let i = 0; i < iterations; i += 1) once()
    const own = Number((await this.#wait()) - start) / 1000 / iterations
    const microseconds = (await this.#rankGroup.sum(own)) / this.#rankGroup.processes
    const algorithmBandwidth = bytes / microseconds / 1000
    return {
      microseconds,
      algorithmBandwidth,
      busBandwidth: algorithmBandwidth * this.#operation.busFactor(this.#rankGroup.worldSize),
      wrong: check ? await this.#countWrong(task, operands[0] as Operands[], first) : null,
    }
  }

  /**
   * Brings an idle GPU back to its full clock, for example after comparing results.
   *
   * All processes make the same number of calls.
   */
  async #warmUp(once: () => void, milliseconds: number): Promise<void> {
    if (this.#options.software) return
    const start = performance.now()
    for (let i = 0; i < warmUpSample; i += 1) once()
    await this.#wait()
    const own = (performance.now() - start) / warmUpSample
    const mean = (await this.#rankGroup.sum(own)) / this.#rankGroup.processes
    for (let i = 0; i < Math.min(mostWarmUps, milliseconds / mean); i += 1) once()
    await this.#wait()
  }

  /** Returns a function that starts the operation once on every rank of this process. */
  #startOf({ setting }: Task, operands: readonly Operands[]): () => void {
    return prepareStart(
      this.#operation,
      operands.map(({ rank: { communicator, stream }, send, recv }) => ({
        ...setting,
        communicator,
        send,
        recv,
        stream,
      })),
    )
  }

  #operandsOf({ type, setting, isInPlace }: Task, rank: Rank, place: number): Operands {
    const { worldSize, count } = setting
    const { sendParts, recvParts, inPlace } = this.#operation
    const { bytes } = dtypeInfo(type)
    const part = (buffer: DeviceBuffer<'u8'>, first: number, parts: number): DeviceBuffer =>
      buffer.slice(place + first * count * bytes, place + (first + parts) * count * bytes).reinterpret(type)
    const recv = part(rank.recv, 0, recvParts(worldSize))
    if (!isInPlace) return { rank, send: part(rank.send, 0, sendParts(worldSize)), recv }
    if (inPlace === 'part of recv') return { rank, send: part(rank.recv, rank.rank, 1), recv }
    const send = part(rank.recv, 0, sendParts(worldSize))
    return { rank, send, recv: inPlace === 'part of send' ? part(rank.recv, rank.rank, 1) : send }
  }

  /** Runs the operation with known data and counts wrong elements over all ranks. */
  async #countWrong({ setting, data }: Task, operands: readonly Operands[], once: () => void): Promise<number> {
    const { count, worldSize } = setting
    // Kernels exist if results are checked.
    const kernelsOf = ({ kernels }: Rank): PatternKernels => kernels as PatternKernels
    for (const { rank, send, recv } of operands) {
      // The fill value makes elements visible that the operation did not write.
      recv.reinterpret('u8').fill(0x5a, { stream: rank.stream })
      for (let part = 0; part < this.#operation.sendParts(worldSize); part += 1)
        data.fill(send.slice(part * count, (part + 1) * count), rank.rank, part, kernelsOf(rank))
    }
    await this.#wait()
    await this.#rankGroup.barrier()
    once()
    await this.#wait()
    let wrong = 0
    for (const { rank, recv } of operands) {
      for (const [place, source] of this.#operation.result(rank.rank, setting).entries())
        wrong += await data.wrong(recv.slice(place * count, (place + 1) * count), source, kernelsOf(rank), rank.stream)
    }
    return await this.#rankGroup.sum(wrong)
  }

  #wait(): Promise<bigint> {
    return waitForRanks(this.#ranks, this.#options)
  }
}
