import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CaseContext } from '../suite.js'

/** Descriptors this process has open. */
export function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length
}

/** What other work on a GPU host may move by itself, in bytes. */
const noise = 1024 * 1024

/**
 * Does the work twice: first to have everything made that is made once, then to see that it leaves no descriptor and no
 * device memory behind.
 */
export async function assertNothingLeft(t: CaseContext, work: () => void | Promise<void>): Promise<void> {
  await work()
  const free = (): number[] => t.devices.map((device) => device.memoryInfo().free)
  const before = { descriptors: openDescriptors(), free: free() }
  await work()
  const descriptors = openDescriptors()
  // What somebody else left to the collector may have gone meanwhile.
  assert.ok(descriptors <= before.descriptors, `${before.descriptors} descriptors were open, now ${descriptors}`)
  const slack = t.isSoftware ? 0 : noise
  const isBack = (): boolean => free().every((bytes, index) => bytes + slack >= (before.free[index] as number))
  // Memory of a process that has just ended comes back a little later.
  for (let wait = 0; wait < 50 && !isBack(); wait += 1) await sleep(100)
  assert.ok(isBack(), `free memory of the devices was ${before.free.join(', ')} and is ${free().join(', ')} bytes`)
}
