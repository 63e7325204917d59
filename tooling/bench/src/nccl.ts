import { dirname } from 'node:path'
import { type Device, DeviceBuffer, driverVersion, type Stream } from '@shoal/driver'
import { Communicator, group, ncclVersion } from '@shoal/nccl'
import { atLeast, atMost, number, table } from './bars.js'
import { compile, cudaIncludeFolder } from './compile.js'
import { Contestant } from './contestant.js'
import { devicesFor, libraryPath } from './devices.js'
import type { Outcome, RunOptions } from './options.js'
import { medianRatio, series } from './statistics.js'

const mebibyte = 2 ** 20
const sizes = [8, 64, 1024, 8 * 1024, 64 * 1024, mebibyte, 4 * mebibyte, 16 * mebibyte, 64 * mebibyte, 256 * mebibyte]

/** All-reduce over all devices of one process, in C and through @shoal/nccl, with the same libnccl. */
export async function benchNccl(options: RunOptions): Promise<Outcome> {
  const all = devicesFor(options)
  const devices = all.slice(0, options.devices ?? all.length)
  if (devices.length < (options.devices ?? 1))
    throw new Error(`--devices ${options.devices}: there are only ${all.length}`)
  const version = ncclVersion()
  const libnccl = libraryPath('nccl')
  const most = Math.min(options.maximumBytes, 256 * mebibyte)
  const c = await startC(libnccl, devices.length, most)
  if (c.version !== version.value) throw new Error(`C loaded NCCL ${c.version}, Shoal ${version.value}`)
  const node = await prepare(devices, most)
  const results = []
  // Both sides at work for a while before anything is timed: V8 compiles what runs often, NCCL connects the devices.
  node.reducer(8)(warmUps(options))
  await c.contestant.ask(`8 ${warmUps(options)}`)
  for (const bytes of sizes.filter((size) => size <= most)) {
    const iterations = iterationsFor(bytes, options)
    const all = node.reducer(bytes)
    await c.contestant.ask(`${bytes} ${Math.ceil(iterations / 4)}`)
    all(Math.ceil(iterations / 4))
    const times = { C: [] as number[], shoal: [] as number[] }
    for (let round = 0; round < options.rounds; round += 1) {
      // Who goes first changes from round to round.
      if (round % 2 === 0) times.C.push(await c.contestant.ask(`${bytes} ${iterations}`))
      times.shoal.push(all(iterations))
      if (round % 2 === 1) times.C.push(await c.contestant.ask(`${bytes} ${iterations}`))
    }
    const busFactor = (2 * (devices.length - 1)) / devices.length
    const bandwidth = (microseconds: number): number => (bytes / microseconds / 1000) * busFactor
    results.push({
      bytes,
      iterations,
      unit: 'µs',
      C: series(times.C),
      shoal: series(times.shoal),
      timeRatio: medianRatio(times.shoal, times.C),
      busBandwidthGBps: { C: bandwidth(series(times.C).median), shoal: bandwidth(series(times.shoal).median) },
      busBandwidthRatio: medianRatio(times.C, times.shoal),
    })
  }
  c.contestant.close()
  await node.dispose()
  console.log(
    `All-reduce of f32 over ${devices.length} devices of one process, out of place, NCCL ${version} (${libnccl})\n`,
  )
  console.log(
    table(
      ['bytes', 'C µs', 'Shoal µs', 'Shoal / C', 'C bus GB/s', 'Shoal bus GB/s', 'Shoal / C'],
      results.map((row) => [
        String(row.bytes),
        number(row.C.median),
        number(row.shoal.median),
        row.timeRatio.toFixed(3),
        number(row.busBandwidthGBps.C),
        number(row.busBandwidthGBps.shoal),
        row.busBandwidthRatio.toFixed(3),
      ]),
    ),
  )
  const smallest = results.find((row) => row.bytes === 8)
  const largest = results.find((row) => row.bytes === 256 * mebibyte)
  const bars = [
    ...(smallest === undefined ? [] : [atMost('8 B, time against C', smallest.timeRatio, 1.1)]),
    ...(largest === undefined ? [] : [atLeast('256 MiB, bus bandwidth against C', largest.busBandwidthRatio, 0.99)]),
  ]
  const names = devices.map((device) => device.name)
  const details = {
    devices: names,
    driverVersion: driverVersion().toString(),
    nccl: version.toString(),
    libnccl,
    software: options.device === 'sim',
  }
  return { results: { ...details, sizes: results }, bars }
}

function warmUps(options: RunOptions): number {
  return options.device === 'sim' ? 50 : 10_000
}

function iterationsFor(bytes: number, options: RunOptions): number {
  if (options.device === 'sim') return bytes <= mebibyte ? 50 : 3
  if (bytes <= 64 * 1024) return 1000
  return bytes <= 4 * mebibyte ? 300 : bytes <= 16 * mebibyte ? 100 : 30
}

async function startC(
  libnccl: string,
  devices: number,
  most: number,
): Promise<{ contestant: Contestant; version: number }> {
  const libcuda = libraryPath('cuda')
  const program = compile('allreduce.c', 'allreduce', [
    `-I${cudaIncludeFolder()}`,
    libcuda,
    `-Wl,-rpath,${dirname(libcuda)}`,
    '-ldl',
  ])
  const [contestant, ready] = await Contestant.start('allreduce.c', program, [libnccl, String(devices), String(most)])
  return { contestant, version: Number(ready.split(' ')[1]) }
}

interface NodeSide {
  /** A function that times that many all-reduces of this size; microseconds of one. */
  reducer(bytes: number): (iterations: number) => number
  dispose(): Promise<void>
}

async function prepare(devices: readonly Device[], most: number): Promise<NodeSide> {
  const streams = devices.map((device) => device.createStream({ nonBlocking: true }))
  const send = devices.map((device) => DeviceBuffer.zeros(device, 'f32', most / 4))
  const receive = devices.map((device) => DeviceBuffer.zeros(device, 'f32', most / 4))
  const communicators = await Communicator.initAll(devices)
  return {
    reducer(bytes) {
      const turns = communicators.map((communicator, index) => ({
        communicator,
        from: (send[index] as DeviceBuffer).slice(0, bytes / 4),
        to: (receive[index] as DeviceBuffer).slice(0, bytes / 4),
        options: { op: 'sum' as const, stream: streams[index] as Stream },
      }))
      const once = (): void => {
        for (const { communicator, from, to, options } of turns) communicator.allReduce(from, to, options)
      }
      return (iterations) => {
        const start = process.hrtime.bigint()
        for (let i = 0; i < iterations; i += 1) group(once)
        // Blocks as the C program does: it is the operation that is timed here, not the event loop.
        for (const stream of streams) stream.synchronizeSync()
        return Number(process.hrtime.bigint() - start) / 1000 / iterations
      }
    },
    async dispose() {
      for (const communicator of communicators) await communicator.destroy()
      for (const one of [...send, ...receive, ...streams]) one.dispose()
    },
  }
}
