import { number } from '@shoal/cli/bench'
import { type Device, DeviceBuffer, type Stream } from '@shoal/driver'
import { atLeast, atMost } from './bars.js'
import { devicesFor } from './devices.js'
import { type Delay, measureDelay, sleep } from './eventLoopRanks/delay.js'
import type { Outcome, RunOptions } from './options.js'

interface Round extends Delay {
  /** The time to queue the work, before the wait. */
  readonly queueing: number
}

/** The event loop's delay while a stream with about a second of work is awaited. */
export async function benchEventLoop(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  // Large enough that a second of copies fits a GPU's launch queue. A full queue would block the caller.
  const elements = options.device === 'sim' ? 2 ** 22 : Math.min(2 ** 30, Math.floor(device.totalMemory / 32))
  const stream = device.createStream({ nonBlocking: true })
  const from = DeviceBuffer.zeros(device, 'f32', elements)
  const to = DeviceBuffer.zeros(device, 'f32', elements)
  const copies = Math.ceil(1.2 / secondsOfCopy(stream, from, to))
  await sleep(50)
  const results: Round[] = []
  for (let round = 0; round < Math.min(options.rounds, 5); round += 1) {
    const start = performance.now()
    for (let i = 0; i < copies; i += 1) to.copyFrom(from, { stream })
    const queueing = performance.now() - start
    results.push({ queueing, ...(await measureDelay(() => stream.synchronize())) })
  }
  for (const buffer of [from, to]) buffer.dispose()
  stream.dispose()
  console.log(
    `Event loop while 'await stream.synchronize()' waits for ${copies} copies of ${elements * 4} bytes on ${device.name}\n`,
  )
  for (const { waited, median, percentile99, longest } of results) {
    console.log(
      `waited ${number(waited)} ms; delay: median ${number(median)}, 99th percentile ${number(percentile99)}, longest ${number(longest)} ms`,
    )
  }
  const of = (name: keyof Round): number[] => results.map((one) => one[name])
  const bars = [
    atLeast('work that was waited for', Math.min(...of('waited')), 900, ' ms'),
    atMost('event-loop delay, 99th percentile', Math.max(...of('percentile99')), 5, ' ms'),
    atMost('event-loop delay, longest', Math.max(...of('longest')), 50, ' ms'),
  ]
  return { results: { device: device.name, copies, bytes: elements * 4, rounds: results }, bars }
}

function secondsOfCopy(stream: Stream, from: DeviceBuffer, to: DeviceBuffer): number {
  const count = 8
  for (let round = 0; ; round += 1) {
    const start = performance.now()
    for (let i = 0; i < count; i += 1) to.copyFrom(from, { stream })
    stream.synchronizeSync()
    if (round === 2) return (performance.now() - start) / 1000 / count
  }
}
