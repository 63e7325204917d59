// Creates ranges and releases them: reserve, create, map, export, dispose. Answers the same requests for this as
// native/memory.c. Started by ranges.ts, which sets V8's options.
import { readdirSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { AddressRange, allocationGranularity, Device, PhysicalMemory } from '@shoal/driver'
import { answerRequests } from '../processes/serve.js'

const device = Device.get(0)
const options = { handleTypes: 'posix-fd' } as const
const bytes = allocationGranularity(device, options)

function makeRange(): void {
  const range = AddressRange.reserve(bytes)
  const memory = PhysicalMemory.create(device, bytes, options)
  const mapped = range.map(memory)
  memory.export().dispose()
  mapped.dispose()
  memory.dispose()
  range.dispose()
}

/** Returns the nanoseconds per range. Pauses let finalizers run. */
async function makeRanges(count: number): Promise<number> {
  let milliseconds = 0
  for (let made = 0; made < count; made += 100) {
    const start = performance.now()
    for (let i = made; i < Math.min(count, made + 100); i += 1) makeRange()
    milliseconds += performance.now() - start
    await setImmediate()
  }
  return (milliseconds * 1e6) / count
}

async function residentBytes(): Promise<number> {
  for (let i = 0; i < 3; i += 1) {
    globalThis.gc?.()
    await setImmediate()
  }
  return process.memoryUsage.rss()
}

await answerRequests('ready', ([request, count]) => {
  if (request === 'ranges') return makeRanges(Number(count))
  if (request === 'resident') return residentBytes()
  if (request === 'free') return device.memoryInfo().free
  // Does not count the descriptor that reads the folder.
  return readdirSync('/proc/self/fd').length - 1
})
