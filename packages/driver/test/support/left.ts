import { setTimeout as sleep } from 'node:timers/promises'
import { driver } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { bindCall, slots64 } from '@shoal/ffi/calls'

const room = 4096
const pause = 10
/** Looks until what is still at work has ended: for the rounds that may leave something, and for the last. */
const fewLooks = 10
const mostLooks = 3000
/**
 * So often the work is done before something counts as left behind. A leak is there each time. What a package keeps for
 * later, such as page-locked memory of each size that copies had, is there until there is enough: sizes and overlap
 * differ each time.
 */
const rounds = 20

let ask: (() => string) | undefined

/** What of each kind nobody has given back to the software device: how many, by name. */
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

/** Does work until it leaves nothing on the software device that was not there before; tells what is left otherwise. */
export async function leftBehind(work: () => Promise<void>): Promise<string> {
  for (let round = 1; ; round += 1) {
    const before = left()
    await work()
    const more = await leftSince(before, round < rounds ? fewLooks : mostLooks)
    if (more === '' || round === rounds) return more
  }
}

/** What there is more of than before, in words; waits for what is given back a little later. */
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
