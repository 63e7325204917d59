import { cuCtxSynchronize, cuMemUnmap } from '@shoal/cuda-sys/driver'
import type { Context } from '../../core/context/context.js'
import type { ReleaseCall } from '../../core/context/releases.js'
import { checkRelease } from '../../core/errors.js'
import { releaseAfterFailure } from '../../core/lifetime.js'

/** Addresses with mapped memory. */
export interface Mapping {
  readonly address: bigint
  readonly byteLength: number
}

/**
 * Unmaps memory when the contexts' work completes, then calls `afterwards`. The driver does not wait: unmapping a
 * running kernel's memory ends the context. Each context loses one child.
 */
export function unmapLate(
  what: string,
  mappings: readonly Mapping[],
  users: readonly Context[],
  afterwards: () => void,
): void {
  const working = users.filter((context) => !context.disposed)
  const synchronize = working.map(
    (context): ReleaseCall => ({
      make: () => cuCtxSynchronize(),
      check: (status) => checkRelease(status, 'cuCtxSynchronize'),
      context,
    }),
  )
  const unmap = mappings.map(
    ({ address, byteLength }): ReleaseCall => ({
      make: () => cuMemUnmap(address, byteLength),
      check: (status) => checkRelease(status, 'cuMemUnmap'),
      context: null,
    }),
  )
  const after = (): void => {
    try {
      afterwards()
    } finally {
      for (const context of users) context._removeChild()
    }
  }
  const [first] = working
  if (first !== undefined) {
    first._releases.add(what, [...synchronize, ...unmap], after, working)
    return
  }
  // No device has access, so unmapping waits for nothing.
  for (const { make, check } of unmap) releaseAfterFailure(what, () => check(make() as number))
  after()
}
