import {
  type DeviceLike,
  isArray,
  isDetached,
  type OptionKeys,
  propertyOf,
  requireInstance,
  requireInteger,
  requireOptions,
  toDeviceOrdinal,
  waitKeys,
  wrongType,
} from '@shoal/types'
import { type CommunicatorWaitOptions, readWait } from '../lifetime/waitOptions.js'
import type { CommunicatorConfig } from './config.js'
import type { Joining } from './init.js'
import { UniqueId } from './uniqueId.js'

/** Options of new communicators. */
export interface InitOptions {
  /** Configuration; NCCL determines omitted fields. Requires NCCL 2.14. */
  readonly config?: CommunicatorConfig | undefined
  /**
   * Ends the init, or aborts the communicator if the signal fires later. Usually the `lost` signal of a job. To limit
   * only the init, use `timeout`.
   */
  readonly signal?: AbortSignal | undefined
  /** Limit of the init in milliseconds, from 0 to 2^31 - 1. Default: no limit. */
  readonly timeout?: number | undefined
}

/** Options of one rank of a new communicator. */
export interface InitRankOptions extends InitOptions {
  /** Device of this rank: an object of `@shoal/driver`, any object with the device protocol, or an ordinal. */
  readonly device: DeviceLike | number
  /** Rank of this process, from 0 to `worldSize` - 1. Each rank must exist exactly once. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /**
   * The id that one rank created and passed to all others. For very many ranks, pass several ids, each from a different
   * rank, in the same order on all ranks (`ncclCommInitRankScalable`, NCCL 2.23).
   */
  readonly id: UniqueId | readonly UniqueId[]
}

/**
 * Options for creating a communicator from another one. While the call waits for other ranks, `signal` and `timeout`
 * abort both.
 */
export interface DeriveOptions extends CommunicatorWaitOptions {
  /** Configuration of the new communicator. Default: the configuration of the original communicator. */
  readonly config?: CommunicatorConfig | undefined
}

/** Options of a `split`, which select this rank's communicator. */
export interface SplitOptions extends DeriveOptions {
  /** Ranks of the same color form a communicator. With null, this rank gets no communicator (`NCCL_SPLIT_NOCOLOR`). */
  readonly color: number | null
  /** Orders the ranks of a color; equal keys keep the old order. Default: the old rank. */
  readonly key?: number | undefined
}

/** Options of a `shrink`. */
export interface ShrinkOptions extends DeriveOptions {
  /** Ranks to exclude. They do not call `shrink`. */
  readonly exclude: Iterable<number>
  /**
   * First ends work in flight (`NCCL_SHRINK_ABORT`), for use after a rank is lost. Waits for this work reject with
   * CommunicatorAbortedError, and the old communicator can only be destroyed or aborted. Default: false.
   */
  readonly abort?: boolean | undefined
}

/** Options of a `grow`. */
export interface GrowOptions extends DeriveOptions {
  /** Number of ranks of the grown communicator. */
  readonly worldSize: number
  /**
   * The id, only on the rank that created it with `createUniqueId()`. The new ranks pass it too; other old ranks do
   * not.
   */
  readonly id?: UniqueId | undefined
}

/** Options of a rank that joins a growing communicator. */
export interface JoinGrownOptions extends InitOptions {
  /** Device of this rank: an object of `@shoal/driver`, any object with the device protocol, or an ordinal. */
  readonly device: DeviceLike | number
  /** Rank in the grown communicator, after the existing ranks. */
  readonly rank: number
  /** Number of ranks of the grown communicator. */
  readonly worldSize: number
  /** The id that a rank of the growing communicator created with `createUniqueId()`. */
  readonly id: UniqueId
}

export const initKeys: OptionKeys<InitOptions> = { config: true, ...waitKeys }
const initRankKeys: OptionKeys<InitRankOptions> = {
  device: true,
  rank: true,
  worldSize: true,
  id: true,
  ...initKeys,
}
export const splitKeys: OptionKeys<SplitOptions> = { color: true, key: true, ...initKeys }
export const shrinkKeys: OptionKeys<ShrinkOptions> = { exclude: true, abort: true, ...initKeys }
export const growKeys: OptionKeys<GrowOptions> = { worldSize: true, id: true, ...initKeys }

export const largestInt = 0x7fff_ffff

/** Returns the ordinals of checked devices without duplicates. */
export function requireDevices(devices: unknown, api: string): number[] {
  const ordinals = Array.from(requireList(devices, api, 'devices', 'devices or ordinals'), (device, index) =>
    toDeviceOrdinal(device as DeviceLike | number, api, `devices[${index}]`),
  )
  if (ordinals.length === 0) throw new RangeError(`${api}: devices must be a list of at least one, not an empty one`)
  const twice = ordinals.find((ordinal, index) => ordinals.indexOf(ordinal) !== index)
  if (twice === undefined) return ordinals
  throw new RangeError(`${api}: devices must be different ones, not ${twice} twice: NCCL allows one rank per device`)
}

/** Checks the options of a joining rank. */
export function readJoining(options: InitRankOptions, api: string, grows: boolean): Joining {
  requireOptions(options, api, initRankKeys)
  const { rank, worldSize, config, id } = options
  const deviceOrdinal = toDeviceOrdinal(options.device, api, 'device')
  const size = requireInteger(worldSize, api, 'worldSize', 1, largestInt)
  requireInteger(rank, api, 'rank', 0, size - 1)
  const ids = grows ? [requireId(id, api)] : requireIds(id, worldSize, api)
  return { deviceOrdinal, rank, worldSize, ids, config, ...(grows ? { grows } : {}), ...readWait(options, api) }
}

export function requireId(id: unknown, api: string): UniqueId {
  return requireInstance(id, api, 'id', UniqueId as never)
}

/** Checks one id, or a list of at most one id per rank. */
function requireIds(ids: unknown, worldSize: number, api: string): readonly UniqueId[] {
  if (!isArray(ids)) return [requireId(ids, api)]
  if (ids.length < 1 || ids.length > worldSize) {
    throw new RangeError(`${api}: id must be a list of 1 to ${worldSize} ids, not of ${ids.length}`)
  }
  return ids.map((id) => requireId(id, api))
}

export function requireExcluded(exclude: unknown, rank: number, worldSize: number, api: string): number[] {
  const ranks = [...new Set(requireList(exclude, api, 'exclude', 'ranks'))].map((one) =>
    requireInteger(one, api, 'exclude', 0, worldSize - 1),
  )
  if (ranks.length === 0) throw new RangeError(`${api}: exclude must be a list of at least one rank, not an empty one`)
  if (!ranks.includes(rank)) return ranks.sort((a, b) => a - b)
  throw new RangeError(`${api}: exclude must be a list of other ranks, not of rank ${rank}, which calls this`)
}

function requireList(value: unknown, api: string, name: string, of: string): Iterable<unknown> {
  if (typeof propertyOf(value, Symbol.iterator) === 'function' && !isDetached(value as never)) {
    return value as Iterable<unknown>
  }
  throw wrongType(api, name, `a list of ${of}`, value)
}
