// Makes ranges and releases them: reserve, create, map, export, dispose. Started by ranges.ts, which sets the options of V8.
import { readdirSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { AddressRange, allocationGranularity, Device, PhysicalMemory } from '@shoal/driver'
import type { RangeFigures, ResourceUse } from './ranges.js'

const device = Device.get(0)
const options = { handleTypes: 'posix-fd' } as const
const bytes = allocationGranularity(device, options)
const [warmUpRanges = 0, ranges = 0] = process.argv.slice(2).map(Number)

function makeRange(): void {
  const range = AddressRange.reserve(bytes)
  const memory = PhysicalMemory.create(device, bytes, options)
  const mapped = range.map(memory)
  memory.export().dispose()
  mapped.dispose()
  memory.dispose()
  range.dispose()
}

/** With pauses in which finalizers run. */
async function makeRanges(count: number): Promise<number> {
  let milliseconds = 0
  for (let made = 0; made < count; made += 100) {
    const start = performance.now()
    for (let i = made; i < Math.min(count, made + 100); i += 1) makeRange()
    milliseconds += performance.now() - start
    await setImmediate()
  }
  return (milliseconds * 1000) / count
}

async function readUse(): Promise<ResourceUse> {
  for (let i = 0; i < 3; i += 1) {
    globalThis.gc?.()
    await setImmediate()
  }
  return {
    residentBytes: process.memoryUsage.rss(),
    freeDeviceBytes: device.memoryInfo().free,
    // Without the one that reads the folder.
    descriptors: readdirSync('/proc/self/fd').length - 1,
  }
}

await makeRanges(warmUpRanges)
const first = await readUse()
const microseconds = await makeRanges(ranges)
const figures: RangeFigures = { first, last: await readUse(), microseconds }
console.log(JSON.stringify(figures))
