import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { CaseContext } from '../suite.js'

/** Descriptors this process has open. */
export function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length
}

/** What other work on a GPU host may move by itself, in bytes. */
const noise = 1024 * 1024
/** The number of descriptors has settled when so many looks, so many milliseconds apart, found the same. */
const looks = 5
const pause = 20
/** More than a device needs that a tool makes many times slower. */
const mostLooks = 3000
/** So often the work is done before something counts as left behind: a leak is there each time. */
const rounds = 4

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/**
 * Waits until nothing opens or closes descriptors any more, and tells what each open one stands for: the driver opens
 * its own when it first needs them, earlier cases close theirs a little later, and the collector closes what was left
 * to it.
 */
async function settledDescriptors(): Promise<readonly string[]> {
  let same = 1
  let count = openDescriptors()
  for (let look = 1; look < mostLooks && same < looks; look += 1) {
    collectGarbage()
    await sleep(pause)
    const now = openDescriptors()
    same = now === count ? same + 1 : 1
    count = now
  }
  assert.equal(same, looks, `the number of open descriptors does not settle; it is ${count}`)
  return readdirSync('/proc/self/fd').flatMap(targetOf).sort()
}

function targetOf(descriptor: string): string[] {
  try {
    // Sockets and pipes have numbers of their own that say nothing.
    return [readlinkSync(`/proc/self/fd/${descriptor}`).replace(/:\[\d+\]$/, '')]
  } catch {
    return [] // the one that read the folder
  }
}

/** What the first list has more often than the second. */
function surplus(of: readonly string[], over: readonly string[]): string {
  const rest = [...over]
  const more = of.filter((target) => {
    const at = rest.indexOf(target)
    if (at >= 0) rest.splice(at, 1)
    return at < 0
  })
  return more.join(', ') || 'none'
}

/**
 * Does the work once to have everything made that is made once, and then to see that it leaves as many descriptors as
 * there were, and no device memory behind. Fewer descriptors would be those of somebody else, closed by mistake. What
 * is too much is looked for again: memory may be taken by a tool that watches the device, or by others, and comes back
 * late from a process that has just ended.
 */
export async function assertNothingLeft(t: CaseContext, work: () => void | Promise<void>): Promise<void> {
  await work()
  let left: string | undefined
  for (let round = 0; round < rounds; round += 1) {
    left = await leftBehind(t, work)
    if (left === undefined) return
  }
  assert.fail(`${rounds} times: ${left}`)
}

async function leftBehind(t: CaseContext, work: () => void | Promise<void>): Promise<string | undefined> {
  const free = (): number[] => t.devices.map((device) => device.memoryInfo().free)
  free()
  const descriptors = await settledDescriptors()
  const before = free()
  await work()
  const slack = t.isSoftware ? 0 : noise
  const isBack = (): boolean => free().every((bytes, index) => bytes + slack >= (before[index] as number))
  let after = await settledDescriptors()
  for (let wait = 0; wait < 25 && (after.length !== descriptors.length || !isBack()); wait += 1) {
    await sleep(100)
    after = await settledDescriptors()
  }
  if (after.length !== descriptors.length) {
    return `descriptors left open: ${surplus(after, descriptors)}; closed: ${surplus(descriptors, after)}`
  }
  return isBack() ? undefined : `free memory of the devices was ${before.join(', ')} and is ${free().join(', ')} bytes`
}

/** What the software device keeps in shared memory for a library; hardware's libraries have their own ways. */
export function sharedMemory(t: CaseContext, library: 'nccl' | 'nvshmem'): string[] {
  return t.isSoftware ? readdirSync('/dev/shm').filter((name) => name.startsWith(`shoal-${library}`)) : []
}

/**
 * Nothing is left but what was there. What other processes of this machine have in use meanwhile goes when they end.
 */
export async function assertSharedMemoryGone(
  t: CaseContext,
  library: 'nccl' | 'nvshmem',
  before: readonly string[],
): Promise<void> {
  const added = sharedMemory(t, library).filter((name) => !before.includes(name))
  const left = (): string[] => sharedMemory(t, library).filter((name) => added.includes(name))
  for (let wait = 0; wait < 200 && left().length > 0; wait += 1) await sleep(100)
  assert.deepEqual(left(), [])
}
