import { NativeMemory } from '@shoal/ffi'
import {
  NCCL_SHRINK_ABORT,
  NCCL_SHRINK_DEFAULT,
  NCCL_SPLIT_NOCOLOR,
  type ncclComm_t,
  ncclCommGrow,
  ncclCommShrink,
  ncclCommSplit,
} from '@shoal/nccl-sys'
import { type CommunicatorConfig, sharesResources } from './config.js'
import type { Deriving } from './derive.js'
import {
  type GrowOptions,
  largestInt,
  requireExcluded,
  requireOptions,
  requireWhole,
  type ShrinkOptions,
  type SplitOptions,
} from './options.js'
import { UniqueId } from './uniqueId.js'

// The three ways from one communicator to another: their arguments, checked, as a call of NCCL.

/** The communicator that another one is to be made of. */
export interface Origin {
  readonly handle: ncclComm_t
  readonly rank: number
  readonly worldSize: number
  readonly config: CommunicatorConfig
  readonly isRevoked: boolean
}

export function splitting({ handle, rank, config }: Origin, options: SplitOptions): Deriving {
  const api = 'Communicator.split'
  requireOptions(options, api)
  const { color, key = rank } = options
  if (color !== null) requireWhole(color, 'color', 0, largestInt, api)
  requireWhole(key, 'key', -largestInt - 1, largestInt, api)
  return {
    api: 'ncclCommSplit',
    shares: sharesResources(config, 'split'),
    common: 'split',
    part: color === null ? undefined : String(color),
    call: (out, native) => void ncclCommSplit(handle, color ?? NCCL_SPLIT_NOCOLOR, key, out, native),
  }
}

export function shrinking({ handle, rank, worldSize, config, isRevoked }: Origin, options: ShrinkOptions): Deriving {
  const api = 'Communicator.shrink'
  requireOptions(options, api)
  const exclude = requireExcluded(options.exclude, rank, worldSize, api)
  if (options.abort !== undefined && typeof options.abort !== 'boolean') {
    throw new TypeError(`${api}: abort must be a boolean`)
  }
  const flags = options.abort === true ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT
  return {
    api: 'ncclCommShrink',
    shares: options.abort !== true && !isRevoked && sharesResources(config, 'shrink'),
    common: `shrink ${[...exclude].sort((left, right) => left - right).join(' ')}`,
    part: '',
    memory: () => {
      const list = NativeMemory.allocate(4 * exclude.length)
      list.i32.set(exclude)
      return list
    },
    call: (out, native, list) => void ncclCommShrink(handle, list, exclude.length, out, native, flags),
  }
}

export function growing({ handle, worldSize: before }: Origin, options: GrowOptions): Deriving {
  const api = 'Communicator.grow'
  requireOptions(options, api)
  const { worldSize, id } = options
  requireWhole(worldSize, 'worldSize', before + 1, largestInt, api)
  if (id !== undefined && !UniqueId._is(id)) throw new TypeError(`${api}: id must be a UniqueId (see createUniqueId)`)
  return {
    api: 'ncclCommGrow',
    shares: false,
    common: 'grow',
    part: '',
    ...(id === undefined
      ? {}
      : {
          id: String(id),
          memory: () => {
            const bytes = NativeMemory.allocate(UniqueId.byteLength)
            bytes.bytes.set(id.toBytes())
            return bytes
          },
        }),
    // An old rank keeps its number: -1.
    call: (out, native, bytes) => void ncclCommGrow(handle, worldSize, bytes, -1, out, native),
  }
}
