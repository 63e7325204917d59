import { number, table } from '@shoal/cli/bench'
import { atLeast, atMost, type Bar } from '../bars.js'
import { aboutDevices, devicesFor } from '../devices.js'
import type { Outcome, RunOptions } from '../options.js'
import { nodeCommand } from '../processes/commands.js'
import { findShares } from '../processes/placements.js'
import { ProcessGroup } from '../processes/processGroup.js'
import { type Delay, measureDelay, sleep } from './delay.js'

/** The steps in which a rank waits, by script. Both pairs of ranks run at the same time. */
const pairs = {
  ncclChild: { init: 'NCCL: initRank', collective: 'NCCL: all-reduce' },
  nvshmemChild: { init: 'NVSHMEM: init', barrier: 'NVSHMEM: barrierAll' },
} as const

/** The delay of a rank's event loop while it waits for a late rank. */
export async function benchEventLoopRanks(options: RunOptions): Promise<Outcome> {
  const devices = devicesFor(options)
  if (devices.length < 2) throw new Error('one device: a rank that waits needs another one to wait for')
  const idle = await measureDelay(() => sleep(1000))
  const measured = await Promise.all(
    Object.entries(pairs).map(([script, steps]) => measurePair(script, steps, options.waitSeconds)),
  )
  const waits = measured.flat()
  console.log(`Event loop of a rank while the other one is ${options.waitSeconds} s late, in milliseconds\n`)
  console.log(
    table(
      ['waits in', 'waited', 'delay: median', '99th percentile', 'longest'],
      [{ what: 'nothing (this process, idle)', ...idle }, ...waits].map((one) => [
        one.what,
        ...[one.waited, one.median, one.percentile99, one.longest].map(number),
      ]),
    ),
  )
  const details = aboutDevices(devices.slice(0, 2), options)
  return { results: { ...details, idle, waits }, bars: waits.flatMap((wait) => barsOf(wait, options.waitSeconds)) }
}

interface Wait extends Delay {
  readonly what: string
}

async function measurePair(script: string, steps: Readonly<Record<string, string>>, seconds: number): Promise<Wait[]> {
  const group = await ProcessGroup.start(
    script,
    [0, 1].map((rank) =>
      nodeCommand(import.meta.url, `${script}.js`, [rank, seconds], { NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME: 'lo' }),
    ),
    findShares(2),
  )
  const waits: Wait[] = []
  try {
    for (const [step, what] of Object.entries(steps)) {
      const [answer = ''] = await group.request(step)
      waits.push({ what, ...(JSON.parse(answer) as Delay) })
    }
    await group.end()
  } finally {
    group.close()
  }
  return waits
}

function barsOf({ what, waited, percentile99, longest }: Wait, seconds: number): Bar[] {
  return [
    atLeast(`${what}, waited`, waited / 1000, seconds * 0.95, ' s'),
    atMost(`${what}, event-loop delay, 99th percentile`, percentile99, 5, ' ms'),
    atMost(`${what}, event-loop delay, longest`, longest, 50, ' ms'),
  ]
}
