import { setTimeout as sleep } from 'node:timers/promises'
import { driver } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { bindCall, slots64 } from '@shoal/ffi/calls'

const room = 4096
const pause = 10
/** Number of looks at the remaining objects: for rounds that may leave some, and for the last round. */
const fewLooks = 10
const mostLooks = 3000
/**
 * Number of rounds before an object counts as leaked. A leak appears in every round. Caches of the package, such as
 * page-locked memory for each copy size, grow only until they suffice. Sizes and overlaps differ from round to round.
 */
const rounds = 20

let ask: (() => string) | undefined

/** Returns the number of objects of each kind that the software device still has. */
export function left(): ReadonlyMap<string, number> {
  ask ??= asking()
  const lines = ask()
    .split('\n')
    .filter((line) => line !== '')
  return new Map(
    lines.map((line) => {
      const [, count, name] = /^(\d+) ([^,]+)/.exec(line) as RegExpExecArray
      return [name as string, Number(count)]
    }),
  )
}

function asking(): () => string {
  const call = bindCall(driver.rawSymbol('shoalSimLeft') as bigint, 2, 'i32', 'shoalSimLeft')
  const text = NativeMemory.allocate(room)
  return () => {
    slots64[0] = text.address
    slots64[1] = BigInt(room)
    const bytes: number = call()
    return new TextDecoder().decode(text.bytes.subarray(0, bytes - 1))
  }
}

/** Repeats work until it leaves no new object on the software device. Returns a description of the leaked objects. */
export async function leftBehind(work: () => Promise<void>): Promise<string> {
  for (let round = 1; ; round += 1) {
    const before = left()
    await work()
    const more = await leftSince(before, round < rounds ? fewLooks : mostLooks)
    if (more === '' || round === rounds) return more
  }
}

/** Describes the objects that were not there before. Waits for late releases. */
export async function leftSince(before: ReadonlyMap<string, number>, looks = mostLooks): Promise<string> {
  for (let look = 1; ; look += 1) {
    const more = [...left()].flatMap(([name, count]) => {
      const increase = count - (before.get(name) ?? 0)
      return increase > 0 ? [`${increase} ${name}`] : []
    })
    if (more.length === 0 || look === looks) return more.join(', ')
    await sleep(pause)
  }
}
