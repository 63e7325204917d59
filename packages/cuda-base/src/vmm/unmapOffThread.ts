import { cuCtxSynchronize, cuMemUnmap } from '@shoal/cuda-sys/driver/common'
import { offThread } from '@shoal/ffi'
import type { Context } from '../context/context.js'
import { checkRelease, Status } from '../errors.js'
import { throwFirst } from '../lifetime.js'

/** Addresses that memory is mapped at. */
export interface Mapping {
  readonly address: bigint
  readonly byteLength: number
}

/**
 * Waits for the work of the contexts and unmaps, on a native thread; then calls `afterwards`. Until then nobody resets
 * the contexts. Each loses one child.
 * @throws StatusError of the first step that failed; the others are done all the same.
 */
export async function unmapOffThread(
  mappings: readonly Mapping[],
  users: Iterable<Context>,
  afterwards: () => void,
): Promise<void> {
  const contexts = [...users]
  const waiting = contexts.filter((context) => !context.disposed)
  for (const context of waiting) context._addWait()
  const failures: unknown[] = []
  const attempt = async (step: () => unknown): Promise<void> => {
    try {
      await step()
    } catch (error) {
      failures.push(error)
    }
  }
  for (const context of waiting) {
    await attempt(async () => {
      const [status = Status.success] = await offThread({ context: context._handle }, () => cuCtxSynchronize())
      checkRelease(status, 'cuCtxSynchronize')
    })
  }
  await attempt(async () => {
    const statuses = await offThread({ stopOnError: false }, () => {
      for (const { address, byteLength } of mappings) cuMemUnmap(address, byteLength)
    })
    for (const status of statuses) await attempt(() => checkRelease(status, 'cuMemUnmap'))
  })
  await attempt(afterwards)
  for (const context of waiting) await attempt(() => context._endWait())
  for (const context of contexts) await attempt(() => context._removeChild())
  throwFirst('Mapped memory', failures)
}
