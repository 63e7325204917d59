import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { CaseContext } from '../suite.js'

/** Returns the number of open descriptors of this process. */
export function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length
}

/** Bytes by which other work on a GPU host may change the free memory. */
const noise = 1024 * 1024
/** The count has settled if this many looks find the same number. The pause between looks is in milliseconds. */
const looks = 5
const pause = 20
/** More looks than a device needs, even under a tool that makes it many times slower. */
const mostLooks = 3000
/** The most rounds of the work. A leak shows in every round, other changes do not. */
const rounds = 4

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/**
 * Waits until the open descriptors stop changing, and returns the target of each. The driver opens its own at first
 * use, earlier cases close theirs a little later, and the garbage collector closes abandoned ones.
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
    // Sockets and pipes have meaningless numbers, so they are removed.
    return [readlinkSync(`/proc/self/fd/${descriptor}`).replace(/:\[\d+\]$/, '')]
  } catch {
    return [] // the descriptor that read the folder
  }
}

/** Returns the entries that the first list has more often than the second. */
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
 * Checks that work leaves no open descriptors and no device memory behind. Runs the work once first, to create
 * everything that is created only once. Fewer descriptors are also an error, because the work then closed another's by
 * mistake. A failed round is repeated: a tool that watches the device or another process may take memory, and memory of
 * an ended process comes back late.
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

/** Returns the software device's files in shared memory for a library. Libraries of hardware use other ways. */
export function sharedMemory(t: CaseContext, library: 'nccl' | 'nvshmem'): string[] {
  return t.isSoftware ? readdirSync('/dev/shm').filter((name) => name.startsWith(`shoal-${library}`)) : []
}

/**
 * Checks that all files that were added since `before` disappear. Files of other processes on this machine disappear
 * when those end.
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
