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

/** A semaphore, and what it is signalled with or waited for. */
export interface SemaphoreOperation {
  /** The semaphore. */
  readonly semaphore: ExternalSemaphore
  /** Of one with a timeline, from 0 to 2^64 - 1. Default: 0. */
  readonly value?: number | bigint | undefined
}

const operationKeys: OptionKeys<SemaphoreOperation> = { semaphore: true, value: true }
/**
 * CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS and …_WAIT_PARAMS: the value comes first, all else is 0 for what is named here.
 */
const parameterBytes = 144
const mostOperations = 1024

/** Operations as C reads them: handles, and a structure for each. */
export interface EncodedSemaphores {
  readonly context: Context
  readonly handles: NativeMemory
  readonly memory: NativeMemory
  readonly count: number
  /** The semaphores, each with a check that throws once it is gone. */
  readonly needs: ReadonlyMap<object, () => void>
}

/** @throws TypeError, RangeError for semaphores of several contexts; DisposedError */
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

/** By what it has: this file is used by entries that do not load its class. */
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
