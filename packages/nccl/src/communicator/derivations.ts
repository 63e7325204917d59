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
import { optionalBoolean, requireInteger, requireOptions } from '@shoal/types'
import { type CommunicatorWaitOptions, readWait } from '../lifetime/waitOptions.js'
import { type CommunicatorConfig, nativeConfig, sharesResources } from './config.js'
import type { Deriving } from './derive.js'
import {
  type DeriveOptions,
  type GrowOptions,
  growKeys,
  largestInt,
  requireExcluded,
  requireId,
  type ShrinkOptions,
  type SplitOptions,
  shrinkKeys,
  splitKeys,
} from './options.js'
import { UniqueId } from './uniqueId.js'

// The three ways to create a communicator from another one: checked arguments for a call of NCCL.

/** The communicator from which another one is created. */
export interface Origin {
  readonly handle: ncclComm_t
  readonly rank: number
  readonly worldSize: number
  readonly config: CommunicatorConfig
  readonly isRevoked: boolean
}

export function splitting({ handle, rank, config }: Origin, options: SplitOptions): Deriving {
  const api = 'Communicator.split'
  requireOptions(options, api, splitKeys)
  const { color, key = rank } = options
  if (color !== null) requireInteger(color, api, 'color', 0, largestInt)
  requireInteger(key, api, 'key', -largestInt - 1, largestInt)
  return {
    api: 'ncclCommSplit',
    shares: sharesResources(config, 'split'),
    callKey: 'split',
    childKey: color === null ? undefined : String(color),
    call: (out, native) => void ncclCommSplit(handle, color ?? NCCL_SPLIT_NOCOLOR, key, out, native),
  }
}

export function shrinking({ handle, rank, worldSize, config, isRevoked }: Origin, options: ShrinkOptions): Deriving {
  const api = 'Communicator.shrink'
  requireOptions(options, api, shrinkKeys)
  const exclude = requireExcluded(options.exclude, rank, worldSize, api)
  const aborts = optionalBoolean(options.abort, api, 'abort', false)
  const flags = aborts ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT
  return {
    api: 'ncclCommShrink',
    shares: !aborts && !isRevoked && sharesResources(config, 'shrink'),
    callKey: `shrink ${exclude.join(' ')}`,
    childKey: '',
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
  requireOptions(options, api, growKeys)
  const { worldSize, id } = options
  requireInteger(worldSize, api, 'worldSize', before + 1, largestInt)
  if (id !== undefined) requireId(id, api)
  return {
    api: 'ncclCommGrow',
    shares: false,
    callKey: 'grow',
    childKey: '',
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
    // -1 keeps an old rank's number.
    call: (out, native, bytes) => void ncclCommGrow(handle, worldSize, bytes, -1, out, native),
  }
}

/** Checks the options before anything changes. @throws TypeError, RangeError */
export function readDeriveOptions(operation: string, options: DeriveOptions): CommunicatorWaitOptions {
  const api = `Communicator.${operation}`
  nativeConfig(options.config, api)?.dispose()
  return readWait(options, api)
}
