import { NativeMemory } from '@shoal/ffi'
import {
  isInstance,
  type OptionKeys,
  outOfRange,
  propertyOf,
  requireCount,
  requireList,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { Context } from '../../core/context/context.js'
import type { ExternalSemaphore } from './externalSemaphore.js'

/** A semaphore and the value for its signal or wait. */
export interface SemaphoreOperation {
  /** The semaphore. */
  readonly semaphore: ExternalSemaphore
  /** Value of a timeline semaphore, from 0 to 2^64 - 1. Default: 0. */
  readonly value?: number | bigint | undefined
}

const operationKeys: OptionKeys<SemaphoreOperation> = { semaphore: true, value: true }
/** Size of CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS and …_WAIT_PARAMS. The value is first; all other fields are 0 here. */
const parameterBytes = 144
const mostOperations = 1024

/** Encoded operations for C: handles, and one structure per handle. */
export interface EncodedSemaphores {
  readonly context: Context
  readonly handles: NativeMemory
  readonly memory: NativeMemory
  readonly count: number
  /** The semaphores. Each has a check that throws after it was disposed of. */
  readonly needs: ReadonlyMap<object, () => void>
}

/** Encodes operations. @throws TypeError, RangeError for semaphores of several contexts; DisposedError */
export function encodeSemaphores(operations: readonly SemaphoreOperation[], api: string): EncodedSemaphores {
  const list = requireList(operations, api, 'operations', 'an array of operations')
  if (list.length === 0 || list.length > mostOperations) {
    throw outOfRange(api, 'operations', `1 to ${mostOperations} operations`, list.length)
  }
  const handles = NativeMemory.allocate(list.length * 8)
  const memory = NativeMemory.allocate(list.length * parameterBytes)
  const needs = new Map<object, () => void>()
  let context: Context | undefined
  for (const [index, operation] of list.entries()) {
    const name = `operations[${index}]`
    requireOptions(operation, api, operationKeys, name)
    const { semaphore, value = 0 } = operation
    const owner = contextOfSemaphore(semaphore, api, `${name}.semaphore`)
    context ??= owner
    if (owner !== context) throw wrongType(api, `${name}.semaphore`, 'of the same context as the others', semaphore)
    handles.u64[index] = semaphore.handle
    memory.u64[(index * parameterBytes) / 8] = timelineValue(value, api, `${name}.value`)
    needs.set(semaphore, () => void semaphore.handle)
  }
  return { context: context as Context, handles, memory, count: list.length, needs }
}

/** Returns a semaphore's context. Checks for properties, because entries that use this file do not load the class. */
function contextOfSemaphore(semaphore: unknown, api: string, name: string): Context {
  const context = typeof semaphore === 'object' ? propertyOf(semaphore, 'context') : undefined
  if (isInstance(context, Context) && propertyOf(semaphore, 'kind') === 'ExternalSemaphore') return context
  throw wrongType(api, name, 'an ExternalSemaphore', semaphore)
}

function timelineValue(value: unknown, api: string, name: string): bigint {
  if (typeof value !== 'bigint') return BigInt(requireCount(value, api, name))
  if (value >= 0n && value < 2n ** 64n) return value
  throw outOfRange(api, name, 'an integer from 0 to 2^64 - 1', value)
}
