import { DeviceBuffer, type Stream } from '@shoal/driver'
import { Communicator, group, UniqueId } from '@shoal/nccl'
import { dtypeInfo } from '@shoal/types'
import { UsageError } from '../../command.js'
import type { CollectiveRow, Figures } from '../figures.js'
import type { BenchOptions, BenchType, Reduction } from '../options.js'
import type { Party } from '../party.js'
import { sizesOf } from '../size.js'
import { BenchData } from './data.js'
import { countFor, type Operation, type Setting } from './operations.js'

// A short wait is spun through, so that the time of a small operation is its own and not that of a wake-up.
const spinMilliseconds = 20

interface Rank {
  readonly rank: number
  readonly communicator: Communicator
  readonly stream: Stream
  /** Bytes of the largest message on either side. */
  readonly send: DeviceBuffer<'u8'>
  readonly recv: DeviceBuffer<'u8'>
}

/** One combination of what an operation is asked for. */
interface Variant {
  readonly type: BenchType
  readonly op: Reduction
  readonly root: number
}

/** Measures an operation over all sizes, types, reductions and roots; `tell` gets each row when it is there. */
export async function measureCollective(
  operation: Operation,
  party: Party,
  options: BenchOptions,
  tell: (row: CollectiveRow) => void,
): Promise<CollectiveRow[]> {
  const variants = variantsOf(operation, party.worldSize, options)
  const ranks = await connect(party, options)
  const rows: CollectiveRow[] = []
  try {
    for (const { type, op, root } of variants) {
      const data = new BenchData(type, operation.reduces ? op : 'sum', party.worldSize)
      const elementBytes = dtypeInfo(type).bytes
      const counts = sizesOf(options.sweep).map((bytes) => countFor(operation, party.worldSize, bytes, elementBytes))
      for (const count of new Set(counts.filter((one) => one > 0))) {
        const setting = { worldSize: party.worldSize, op, root, count }
        const parts = Math.max(operation.sendParts(party.worldSize), operation.recvParts(party.worldSize))
        const row: CollectiveRow = {
          operation: operation.name,
          bytes: count * parts * elementBytes,
          count,
          dtype: type,
          op: operation.reduces ? op : null,
          root: operation.rooted ? root : null,
          outOfPlace:
            options.inPlace === 'in'
              ? null
              : await measure(operation, type, setting, false, ranks, data, party, options),
          inPlace:
            options.inPlace === 'out' || operation.inPlace === undefined
              ? null
              : await measure(operation, type, setting, true, ranks, data, party, options),
        }
        rows.push(row)
        tell(row)
      }
    }
  } catch (error) {
    // Ranks that were left alone in an operation would wait for ever.
    await Promise.all(ranks.map(({ communicator }) => communicator.abort()))
    throw error
  } finally {
    await disconnect(ranks)
  }
  return rows
}

function variantsOf(operation: Operation, worldSize: number, options: BenchOptions): Variant[] {
  if (operation.rooted && options.root >= worldSize)
    throw new UsageError(`--root ${options.root}: there ${worldSize === 1 ? 'is one rank' : `are ${worldSize} ranks`}`)
  const roots = !operation.rooted
    ? [0]
    : options.root === -1
      ? Array.from({ length: worldSize }, (_, rank) => rank)
      : [options.root]
  const ops = operation.reduces ? options.reductions : options.reductions.slice(0, 1)
  return options.types.flatMap((type) => ops.flatMap((op) => roots.map((root) => ({ type, op, root }))))
}

async function connect(party: Party, options: BenchOptions): Promise<Rank[]> {
  const { worldSize } = party
  const bytes = options.sweep.most
  const signal = AbortSignal.any([AbortSignal.timeout(options.timeout), ...(party.lost ? [party.lost] : [])])
  const communicators =
    party.processes === 1
      ? await Communicator.initAll(party.ranks.map(({ device }) => device))
      : [await joinOthers(party, signal)]
  return party.ranks.map(({ rank, device }, index) => ({
    rank,
    communicator: communicators[index] as Communicator,
    stream: device.createStream({ nonBlocking: true }),
    send: DeviceBuffer.zeros(device, 'u8', Math.max(bytes, worldSize * 8)),
    recv: DeviceBuffer.zeros(device, 'u8', Math.max(bytes, worldSize * 8)),
  }))
}

async function joinOthers(party: Party, signal: AbortSignal): Promise<Communicator> {
  const [{ rank, device }] = party.ranks as [Party['ranks'][number]]
  const bytes = await party.share('nccl', () => UniqueId.create().toBytes())
  const id = UniqueId.fromBytes(bytes)
  return Communicator.initRank({ device, rank, worldSize: party.worldSize, id, signal })
}

async function disconnect(ranks: readonly Rank[]): Promise<void> {
  await Promise.all(ranks.map(({ communicator }) => communicator.destroy()))
  for (const { send, recv, stream } of ranks) for (const one of [send, recv, stream]) one.dispose()
}

/** The buffers of a rank for one size, and what they have to hold before and afterwards. */
interface Operands {
  readonly rank: Rank
  readonly send: DeviceBuffer
  readonly recv: DeviceBuffer
}

async function measure(
  operation: Operation,
  type: BenchType,
  setting: Setting,
  isInPlace: boolean,
  ranks: readonly Rank[],
  data: BenchData,
  party: Party,
  options: BenchOptions,
): Promise<Figures> {
  const operands = ranks.map((rank) => operandsOf(operation, type, setting, isInPlace, rank))
  const queue = (): void => {
    for (const { rank, send, recv } of operands) operation.queue(rank.communicator, send, recv, rank.stream, setting)
  }
  // Sending and receiving at once need a group even of one rank.
  const once = ranks.length > 1 || operation.name === 'send-recv' ? () => group(queue) : queue
  const wait = (): Promise<void> => waitFor(ranks, party, options)

  for (let i = 0; i < options.warmUps; i += 1) once()
  await wait()
  await party.collect([])
  const start = process.hrtime.bigint()
  for (let i = 0; i < options.iterations; i += 1) once()
  await wait()
  const own = Number(process.hrtime.bigint() - start) / 1000 / options.iterations
  const all = await party.collect([own])
  const microseconds = all.reduce((sum, value) => sum + value, 0) / all.length

  const parts = Math.max(operation.sendParts(setting.worldSize), operation.recvParts(setting.worldSize))
  const bytes = setting.count * parts * dtypeInfo(type).bytes
  const algorithmBandwidth = bytes / microseconds / 1000
  const wrong = options.check
    ? await countWrong(operation, setting, isInPlace, operands, once, wait, data, party)
    : null
  return {
    microseconds,
    algorithmBandwidth,
    busBandwidth: algorithmBandwidth * operation.busFactor(setting.worldSize),
    wrong,
  }
}

function operandsOf(
  operation: Operation,
  type: BenchType,
  { worldSize, count }: Setting,
  isInPlace: boolean,
  rank: Rank,
): Operands {
  const part = (buffer: DeviceBuffer<'u8'>, first: number, parts: number): DeviceBuffer => {
    const { bytes } = dtypeInfo(type)
    return buffer.slice(first * count * bytes, (first + parts) * count * bytes).reinterpret(type)
  }
  const [sendParts, recvParts] = [operation.sendParts(worldSize), operation.recvParts(worldSize)]
  const recv = part(rank.recv, 0, recvParts)
  if (!isInPlace) return { rank, send: part(rank.send, 0, sendParts), recv }
  if (operation.inPlace === 'part of recv') return { rank, send: part(rank.recv, rank.rank, 1), recv }
  const send = part(rank.recv, 0, sendParts)
  return { rank, send, recv: operation.inPlace === 'part of send' ? part(rank.recv, rank.rank, 1) : send }
}

/** Once more with data that is known, and every element of what arrives compared. */
async function countWrong(
  operation: Operation,
  setting: Setting,
  isInPlace: boolean,
  operands: readonly Operands[],
  once: () => void,
  wait: () => Promise<void>,
  data: BenchData,
  party: Party,
): Promise<number> {
  const { count, worldSize } = setting
  for (const { rank, send, recv } of operands) {
    // What stays as it was has to be seen.
    recv.reinterpret('u8').fill(0x5a, { stream: rank.stream })
    for (let part = 0; part < operation.sendParts(worldSize); part += 1)
      data.fill(send.slice(part * count, (part + 1) * count), rank.rank, part, rank.stream)
  }
  if (isInPlace && operation.inPlace === undefined) throw new Error(`${operation.name} has no in-place form`)
  await wait()
  await party.collect([])
  once()
  await wait()
  let wrong = 0
  for (const { rank, recv } of operands) {
    for (const [place, source] of operation.result(rank.rank, setting).entries())
      wrong += await data.wrong(recv.slice(place * count, (place + 1) * count), source, rank.stream)
  }
  const all = await party.collect([wrong])
  return all.reduce((sum, value) => sum + value, 0)
}

async function waitFor(ranks: readonly Rank[], party: Party, options: BenchOptions): Promise<void> {
  const end = performance.now() + spinMilliseconds
  for (const { stream } of ranks) {
    while (!stream.query()) {
      if (performance.now() < end) continue
      await stream.synchronize({ timeout: options.timeout, ...(party.lost ? { signal: party.lost } : {}) })
    }
  }
}
