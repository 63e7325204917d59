import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type Delay, measureDelay, sleep } from '../eventLoopRanks/delay.js'

/** Results of a server on the same event loop. */
export interface Beside {
  readonly tripsPerSecond: number
  readonly requests: number
  /** Milliseconds from a request to its answer, measured in another process. */
  readonly median: number
  readonly percentile99: number
  readonly longest: number
  readonly delay: Delay
}

/** Answers requests during round trips: `tripsPerSecond` trips, started every millisecond, for `milliseconds`. */
export async function serveBeside(
  trip: (lane: number) => Promise<void>,
  tripsPerSecond: number,
  milliseconds: number,
): Promise<Beside> {
  const server = createServer((_, response) => response.end('ok\n')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = fork(fileURLToPath(new URL('client.js', import.meta.url)), [String(port)], { execArgv: [] })
  await once(client, 'message') // the client has connected
  let begun = 0
  const failures: unknown[] = []
  const running = new Set<Promise<void>>()
  const delay = await measureDelay(async () => {
    client.send('begin')
    const start = performance.now()
    for (let now = start; now < start + milliseconds; now = performance.now()) {
      // Starts all trips that are due, because the timer is sometimes late. If they cannot keep up, the rate shows it.
      const due = Math.floor(((now - start) / 1000) * tripsPerSecond)
      for (; begun < due && running.size < 64; begun += 1) {
        const one = trip(begun).catch((error: unknown) => void failures.push(error))
        running.add(one)
        one.finally(() => running.delete(one))
      }
      await sleep(1)
    }
    await Promise.all(running)
  })
  const answered = once(client, 'message')
  client.send('end')
  const [times] = (await answered) as [number[]]
  server.close()
  server.closeAllConnections()
  if (failures.length > 0) throw failures[0]
  times.sort((a, b) => a - b)
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? Number.NaN
  return {
    tripsPerSecond: begun / (delay.waited / 1000),
    requests: times.length,
    median: at(0.5),
    percentile99: at(0.99),
    longest: at(1),
    delay,
  }
}
