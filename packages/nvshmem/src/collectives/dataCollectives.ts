import {
  nvshmem_alltoallmem,
  nvshmem_broadcastmem,
  nvshmem_fcollectmem,
  type nvshmem_float_alltoall,
  type nvshmem_float_broadcast,
  type nvshmem_float_fcollect,
  nvshmemx_alltoallmem_on_stream,
  nvshmemx_broadcastmem_on_stream,
  nvshmemx_fcollectmem_on_stream,
  type nvshmemx_float_alltoall_on_stream,
  type nvshmemx_float_broadcast_on_stream,
  type nvshmemx_float_fcollect_on_stream,
} from '@shoal/nvshmem-sys'
import { dtypeInfo, type OptionKeys, requireInteger, requireOptions, type WaitOptions, waitKeys } from '@shoal/types'
import { checkNvshmem } from '../errors.js'
import { type Family, typedFamily } from '../families.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { type StreamOperand, streamAt } from '../operands.js'
import { waitOf } from '../queue/callQueue.js'
import { startOnStream } from '../queue/onStream.js'
import { type CollectiveOperands, type CollectiveTeam, checkCollective, checkOnStream, type Shape } from './operands.js'

/** Collectives that copy elements without computing. */
export type DataCollective = 'broadcast' | 'fcollect' | 'allToAll'

/** Number of elements of a collective. */
export interface CountOptions {
  /** Number of elements per part. Default: all elements of both buffers, whose lengths must match. */
  readonly count?: number | undefined
}

/** Number of elements of a collective, and limits of the wait for the other PEs. */
export type CollectiveOptions = CountOptions & WaitOptions

/** Number of elements of a collective, and its stream. */
export interface StreamCollectiveOptions extends CountOptions {
  /**
   * Stream to queue on: a stream object, a bare `cudaStream_t`, or null for the default stream. Default: the stream of
   * `Stream.use`, else the default stream.
   */
  readonly stream?: StreamOperand | undefined
}

/** The root of a broadcast. */
export interface RootOptions {
  /** PE whose elements are sent, by its number in the team. */
  readonly root: number
}

const keys = {
  sync: { count: true },
  wait: { count: true, ...waitKeys },
  stream: { count: true, stream: true },
} as const satisfies {
  sync: OptionKeys<CountOptions>
  wait: OptionKeys<CollectiveOptions>
  stream: OptionKeys<StreamCollectiveOptions>
}
const rootKeys = {
  sync: { ...keys.sync, root: true },
  wait: { ...keys.wait, root: true },
  stream: { ...keys.stream, root: true },
} as const

type Move = typeof nvshmem_float_fcollect
type StreamMove = typeof nvshmemx_float_fcollect_on_stream

const broadcastOf = typedFamily<typeof nvshmem_float_broadcast>('nvshmem_', '_broadcast')
const broadcastOnStreamOf = typedFamily<typeof nvshmemx_float_broadcast_on_stream>('nvshmemx_', '_broadcast_on_stream')

const moves = {
  fcollect: {
    typed: typedFamily<typeof nvshmem_float_fcollect>('nvshmem_', '_fcollect'),
    bytes: nvshmem_fcollectmem,
    typedOnStream: typedFamily<typeof nvshmemx_float_fcollect_on_stream>('nvshmemx_', '_fcollect_on_stream'),
    bytesOnStream: nvshmemx_fcollectmem_on_stream,
  },
  allToAll: {
    typed: typedFamily<typeof nvshmem_float_alltoall>('nvshmem_', '_alltoall'),
    bytes: nvshmem_alltoallmem,
    typedOnStream: typedFamily<typeof nvshmemx_float_alltoall_on_stream>('nvshmemx_', '_alltoall_on_stream'),
    bytesOnStream: nvshmemx_alltoallmem_on_stream,
  },
} satisfies Record<
  string,
  { typed: Family<Move>; bytes: Move; typedOnStream: Family<StreamMove>; bytesOnStream: StreamMove }
>

function shapeOf(kind: DataCollective, peCount: number): Shape {
  if (kind === 'broadcast') return { targetParts: 1, sourceParts: 1, inPlace: true }
  if (kind === 'fcollect') return { targetParts: peCount, sourceParts: 1, inPlace: false }
  return { targetParts: peCount, sourceParts: peCount, inPlace: false }
}

interface Checked extends CollectiveOperands {
  /** Name of the C function, for errors. */
  readonly api: string
  /** Number of elements, or of bytes if NVSHMEM has no function for the type. */
  readonly units: number
  readonly isTyped: boolean
  readonly root: number
}

function check(
  { live, team }: CollectiveTeam,
  kind: DataCollective,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: CountOptions & Partial<RootOptions>,
  way: keyof typeof keys,
  api: string,
): Checked {
  requireOptions<object>(options, api, (kind === 'broadcast' ? rootKeys : keys)[way])
  const root = kind === 'broadcast' ? requireInteger(options.root, api, 'root', 0, team.peCount - 1) : 0
  const operands = checkCollective(live, target, source, options.count, shapeOf(kind, team.peCount), api)
  const { bytes, nvshmemName } = dtypeInfo(operands.dtype)
  const c = kind === 'allToAll' ? 'alltoall' : kind
  const isTyped = nvshmemName !== undefined
  return {
    ...operands,
    api: isTyped ? `nvshmem_${nvshmemName}_${c}` : `nvshmem_${c}mem`,
    units: isTyped ? operands.count : operands.count * bytes,
    isTyped,
    root,
  }
}

function call({ handle }: CollectiveTeam, kind: DataCollective, checked: Checked): number {
  const { dtype, target, source, units, isTyped, root } = checked
  if (kind === 'broadcast') {
    const broadcast = (isTyped ? broadcastOf(dtype) : undefined) ?? nvshmem_broadcastmem
    return broadcast(handle, target, source, units, root)
  }
  const move = (isTyped ? moves[kind].typed(dtype) : undefined) ?? moves[kind].bytes
  return move(handle, target, source, units)
}

export async function dataCollective(
  team: CollectiveTeam,
  kind: DataCollective,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: CollectiveOptions & Partial<RootOptions>,
): Promise<void> {
  const api = `Team.${kind}`
  const checked = check(team, kind, target, source, options, 'wait', api)
  const [status] = await team.live.queue.run(api, () => call(team, kind, checked), { wait: waitOf(options) })
  checkNvshmem(status, checked.api)
}

export function dataCollectiveSync(
  team: CollectiveTeam,
  kind: DataCollective,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: CountOptions & Partial<RootOptions>,
): void {
  const api = `Team.${kind}Sync`
  const checked = check(team, kind, target, source, options, 'sync', api)
  checkNvshmem(
    team.live.queue.callSync(api, () => call(team, kind, checked)),
    checked.api,
  )
}

export function queueDataCollective(
  team: CollectiveTeam,
  kind: DataCollective,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: StreamCollectiveOptions & Partial<RootOptions>,
): Promise<void> {
  const api = `Team.${kind}OnStream`
  const { live, handle } = team
  const checked = check(team, kind, target, source, options, 'stream', api)
  const stream = streamAt(live, options.stream, api)
  const { dtype, units, isTyped, root } = checked
  const record = (): number => {
    if (kind === 'broadcast') {
      const broadcast = (isTyped ? broadcastOnStreamOf(dtype) : undefined) ?? nvshmemx_broadcastmem_on_stream
      return broadcast(handle, checked.target, checked.source, units, root, stream)
    }
    const move = (isTyped ? moves[kind].typedOnStream(dtype) : undefined) ?? moves[kind].bytesOnStream
    return move(handle, checked.target, checked.source, units, stream)
  }
  const uses = [target, source, team.team]
  const checkStatus = (status: unknown): void => checkOnStream(status, checked.api)
  return startOnStream(live, { api, stream, given: options.stream, call: record, uses, check: checkStatus })
}
