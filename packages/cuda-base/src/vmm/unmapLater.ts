import { cuCtxSynchronize, cuMemUnmap } from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import type { Context } from '../context.js'
import { checkRelease, Status } from '../errors.js'
import { throwFirst } from '../lifetime.js'

/** Addresses that memory is mapped at. */
export interface Mapping {
  readonly address: bigint
  readonly byteLength: number
}

/**
 * Waits for the work of the contexts and unmaps, on a native thread. Until then nobody resets the contexts. They lose one
 * child each.
 * @throws StatusError the first there was; what is mapped goes all the same.
 */
export async function unmapOffThread(mappings: readonly Mapping[], users: Iterable<Context>): Promise<void> {
  const contexts = [...users]
  const waiting: Context[] = []
  const failures: unknown[] = []
  try {
    for (const context of contexts) {
      if (context.disposed) continue
      context._addWait()
      waiting.push(context)
      try {
        const [status = Status.success] = await offThread({ context: context._handle }, () => cuCtxSynchronize())
        checkRelease(status, 'cuCtxSynchronize')
      } catch (error) {
        failures.push(error)
      }
    }
    const statuses = await offThread({ stopOnError: false }, () => {
      for (const { address, byteLength } of mappings) cuMemUnmap(address, byteLength)
    })
    for (const status of statuses) {
      try {
        checkRelease(status, 'cuMemUnmap')
      } catch (error) {
        failures.push(error)
      }
    }
  } finally {
    for (const context of waiting) context._endWait()
    for (const context of contexts) context._removeChild()
  }
  throwFirst('Mapped memory', failures)
}
