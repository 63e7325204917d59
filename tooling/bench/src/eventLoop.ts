import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type Device, DeviceBuffer, type Stream } from '@shoal/driver'
import { atLeast, atMost, number } from './bars.js'
import { devicesFor } from './devices.js'
import type { Outcome, RunOptions } from './options.js'

const milliseconds = 1e6 // the histogram counts nanoseconds

interface Round {
  /** How long queueing the work took, before the wait. */
  readonly queueingMs: number
  readonly waitedMs: number
  readonly delayMs: { readonly p50: number; readonly p99: number; readonly max: number }
  readonly samples: number
}

/** How late the event loop is while a stream with about a second of work is awaited. */
export async function benchEventLoop(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  // Large enough on a GPU that a second of copies fits its launch queue: a full queue would block the caller.
  const elements = options.device === 'sim' ? 2 ** 22 : Math.min(2 ** 30, Math.floor(device.totalMemory / 32))
  const stream = device.createStream({ nonBlocking: true })
  const from = DeviceBuffer.zeros(device, 'f32', elements)
  const to = DeviceBuffer.zeros(device, 'f32', elements)
  const copies = Math.ceil(1.2 / secondsOfCopy(stream, from, to))
  await idle()
  const results: Round[] = []
  for (let round = 0; round < Math.min(options.rounds, 5); round += 1) {
    const queued = performance.now()
    for (let i = 0; i < copies; i += 1) to.copyFrom(from, { stream })
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    const start = performance.now()
    await stream.synchronize()
    const waited = performance.now() - start
    // The timer that measures sees a stall only when it fires again.
    await idle()
    delay.disable()
    results.push({
      queueingMs: start - queued,
      waitedMs: waited,
      delayMs: {
        p50: delay.percentile(50) / milliseconds,
        p99: delay.percentile(99) / milliseconds,
        max: delay.max / milliseconds,
      },
      samples: delay.count,
    })
  }
  for (const buffer of [from, to]) buffer.dispose()
  stream.dispose()
  console.log(
    `Event loop while 'await stream.synchronize()' waits for ${copies} copies of ${elements * 4} bytes on ${device.name}\n`,
  )
  for (const one of results) {
    const { p50, p99, max } = one.delayMs
    console.log(
      `waited ${number(one.waitedMs)} ms; delay: median ${number(p50)}, 99th percentile ${number(p99)}, longest ${number(max)} ms`,
    )
  }
  const worst = (pick: (one: Round) => number): number => Math.max(...results.map(pick))
  const bars = [
    atLeast('work that was waited for', Math.min(...results.map((one) => one.waitedMs)), 900, ' ms'),
    atMost(
      'event-loop delay, 99th percentile',
      worst((one) => one.delayMs.p99),
      5,
      ' ms',
    ),
    atMost(
      'event-loop delay, longest',
      worst((one) => one.delayMs.max),
      50,
      ' ms',
    ),
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

function idle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50))
}
