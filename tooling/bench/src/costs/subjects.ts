import { timeOf, timeOfAwaited } from '@shoal/cli/bench'
import { Device } from '@shoal/driver'
import type { Subject } from '../turns.js'
import { type CostCase, costCases } from './cases.js'
import { makeCostLoops } from './loops.js'

/** The subjects for `startNodeSubjects`. `bytes` is the size of the largest copy. */
export function makeSubjects([bytes = '']: readonly string[]): readonly Subject[] {
  const device = Device.get(0)
  const most = Number(bytes)
  const cases = costCases(most, device.isSoftware)
  const loops = makeCostLoops(device, most)
  const bytesOf = (test: string): number => (cases[test] as CostCase).bytes
  const found = <Loop>(loop: Loop | undefined, test: string): Loop => {
    if (loop === undefined) throw new Error(`no loop for ${test}`)
    return loop
  }
  const subject = <Loop>(
    name: string,
    find: (test: string, bytes: number) => Loop | undefined,
    time: (count: number, warmUps: number, loop: Loop) => number | Promise<number>,
  ): Subject => ({
    name,
    cases: Object.keys(cases).filter((test) => find(test, bytesOf(test)) !== undefined),
    measure: (test, count) => time(count, 1, found(find(test, bytesOf(test)), test)),
  })
  return [
    subject('awaited', loops.awaited, timeOfAwaited),
    subject('blocking', loops.blocking, timeOf),
    subject('prepared', loops.prepared, timeOfAwaited),
    subject('cached', loops.cached, timeOf),
  ]
}
