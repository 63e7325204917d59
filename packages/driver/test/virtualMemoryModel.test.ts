import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'

Object.assign(process.env, {
  SHOAL_DEVICE: 'sim',
  SHOAL_SIM_DEVICES: '2',
  // So small that sequences run out of memory.
  SHOAL_SIM_MEMORY_BYTES: String(48 * 2 ** 20),
  // Maximum wait for devices that other processes may add to a multicast object.
  SHOAL_SIM_TIMEOUT_SECONDS: '0.001',
})
const { AddressRange, Device, DeviceBuffer, MulticastObject, PhysicalMemory, allocationGranularity } = await import(
  '@shoal/driver'
)
const { finishReleasesSync } = await import('@shoal/driver/shared')
const { World } = await import('./model/world.js')
const { commands } = await import('./model/commands.js')
const { outcomes } = await import('./model/step.js')

/** SHOAL_MODEL_RUNS=10000 for a long run, SHOAL_MODEL_SEED to repeat one, SHOAL_MODEL_RESULT to store its result. */
const runs = Number(process.env['SHOAL_MODEL_RUNS'] ?? 500)
const seed = Number(process.env['SHOAL_MODEL_SEED'] ?? Date.now() % 2 ** 31)
const resultFile = process.env['SHOAL_MODEL_RESULT']

const openDescriptors = (): number => readdirSync('/proc/self/fd').length
/** Returns how many pieces of address space are mapped to the software device's memory. */
const mappings = (): number => readFileSync('/proc/self/maps', 'utf8').split('memfd:').length - 1

/** Commands that never succeed. */
const alwaysRefused = new Set(['createOdd'])

/** Creates the streams, threads and sockets that a process creates once and keeps. */
async function makeWhatStays(devices: readonly import('@shoal/driver').Device[], unit: number): Promise<void> {
  for (const device of devices) {
    using memory = PhysicalMemory.create(device, unit, { handleTypes: 'posix-fd' })
    using range = AddressRange.reserve(unit)
    const mapped = range.map(memory)
    DeviceBuffer.view(device, mapped, 'u8').slice(0, 9).fillSync(1)
    await mapped[Symbol.asyncDispose]()
    using multicast = MulticastObject.create({ deviceCount: 1, byteLength: unit, handleTypes: 'posix-fd' })
    multicast.addDevice(device).bindMemorySync(memory)
  }
}

test(`${runs} random sequences of mapped-memory operations match the model, and leak nothing`, async () => {
  const devices = Device.all()
  const unit = allocationGranularity(devices[0] as never)
  await makeWhatStays(devices, unit)
  const baseline = { descriptors: openDescriptors(), mappings: mappings() }
  let longest = 0
  let steps = 0
  const property = fc.asyncProperty(
    fc.commands(commands, { size: 'large', maxCommands: 200 }),
    fc.nat(1000),
    async (list, start) => {
      const world = new World(devices, unit)
      try {
        await fc.asyncModelRun(() => ({ model: {}, real: world }), list)
        const done = [...list].length
        steps += done
        longest = Math.max(longest, done)
      } finally {
        world.disposeAll(start)
      }
      for (const device of devices) {
        finishReleasesSync()
        const { free, total } = device.memoryInfo()
        expect(total - free).toBe(0)
      }
      const left = { descriptors: openDescriptors(), mappings: mappings() }
      expect(left).toEqual(baseline)
    },
  )
  const begin = performance.now()
  await fc.assert(property, { numRuns: runs, seed })
  const seconds = (performance.now() - begin) / 1000
  const made = [...outcomes].map(([name, { done, refused }]) => `${name} ${done} done, ${refused} refused`)
  console.log(
    `${runs} sequences (seed ${seed}), ${steps} commands (at most ${longest} in one) in ${seconds.toFixed(1)} s\n${made.join('\n')}`,
  )
  if (resultFile !== undefined) {
    const result = {
      date: new Date().toISOString().slice(0, 10),
      device: 'software device',
      node: process.version,
      seed,
      sequences: runs,
      commands: steps,
      longestSequence: longest,
      failures: 0,
      seconds: Math.round(seconds),
      outcomes: Object.fromEntries([...outcomes].sort(([one], [other]) => one.localeCompare(other))),
    }
    writeFileSync(resultFile, `${JSON.stringify(result, null, 2)}\n`)
  }
  if (runs < 500) return
  for (const [name, { done }] of outcomes) if (!alwaysRefused.has(name)) expect([name, done]).not.toEqual([name, 0])
}, 3_600_000)
