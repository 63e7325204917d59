import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Communicator, deviceResourceNeeds, group, groupOffThread, NcclMemory, UniqueId } from '@shoal/nccl'
import { beforeAll, describe, expect, test } from 'vitest'
import { nativeMemoryKept } from '../../ffi/test/support/nativeMemoryKept.js'
import { openTimers } from '../../ffi/test/support/openTimers.js'
import { startSoftwareDevice, TestStream } from './fixtures/device.js'

beforeAll(startSoftwareDevice)

const script = `
  import { Communicator, NcclMemory } from '@shoal/nccl'
  // A signal that lives longer does not keep them.
  const lost = new AbortController()
  process.on('warning', (warning) => console.log(warning.name, warning.message))
  await (async () => {
    const [dropped, ended] = await Communicator.initAll([0, 1], { signal: lost.signal })
    await ended.ready()
    const memory = [await NcclMemory.allocate(0, 16), await NcclMemory.allocate(1, 32)]
    if (process.argv[1] === 'both') {
      await dropped.destroy()
      await memory[0].free()
      memory[1].dispose()
    }
    await ended.destroy()
  })()
  for (let i = 0; i < 20; i += 1) {
    gc()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  lost.abort()
`

function run(which: 'one' | 'both', environment: NodeJS.ProcessEnv = {}): string {
  return execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', script, which], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: '2',
      NODE_OPTIONS: '',
      ...environment,
    },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

test('a dropped communicator is reported, not destroyed', () => {
  const output = run('one')
  expect(output).toContain('ShoalLeakWarning Communicator of rank 0 of 2 on device 0 was dropped')
  expect(output).not.toContain('rank 1')
  for (const memory of ['16 bytes on device 0', '32 bytes on device 1']) {
    expect(output).toContain(
      `ShoalLeakWarning NcclMemory of ${memory} was dropped without dispose(); it stays allocated`,
    )
  }
})

test('a destroyed communicator is not reported', () => {
  expect(run('both')).toBe('')
})

test('SHOAL_TRACE_LEAKS=1 adds the place where the communicator was made', () => {
  expect(run('one', { SHOAL_TRACE_LEAKS: '1' })).toMatch(/made at/)
})

describe('native memory is not leaked by', () => {
  const ranks = [0, 1]
  const config = { minCTAs: 1, commName: 'leaks' }
  const destroy = (all: readonly (Communicator | undefined)[]) => Promise.all(all.map((one) => one?.destroy()))

  async function pair(options: object = {}): Promise<[Communicator, Communicator]> {
    return (await Communicator.initAll(ranks, options)) as [Communicator, Communicator]
  }

  test('every way to make a communicator, including failing ones', async () => {
    const kept = await nativeMemoryKept(async () => {
      await destroy(await pair())
      const all = await pair({ config })
      await destroy(await Promise.all(all.map((one) => one.split({ color: 0, config }))))
      await destroy(await Promise.all(all.map((one) => one.split({ color: null }))))
      await destroy([await all[0].shrink({ exclude: [1], config })])
      const id = all[0].createUniqueId()
      const joining = { device: 2, rank: 2, worldSize: 3, id, config }
      const growing = [{ id }, {}].map((more, rank) => all[rank as 0 | 1].grow({ worldSize: 3, config, ...more }))
      await destroy(await Promise.all([...growing, Communicator.joinGrown(joining)]))
      all[0].properties()
      await destroy(all)
      const id2 = UniqueId.create()
      await destroy([await Communicator.initRank({ device: 0, rank: 0, worldSize: 1, id: id2, config })])
      for (const failing of [[0, 7], [7]]) await expect(Communicator.initAll(failing, { config })).rejects.toThrow()
      const wrong = { config: { commName: 'leaks', minCTAs: 0 } }
      await expect(Communicator.initAll([0], wrong)).rejects.toThrow(RangeError)
    })
    expect(kept).toEqual([])
  })

  test('device communicators with resources and teams, made or refused', async () => {
    const all = await pair()
    const kept = await nativeMemoryKept(async () => {
      const team = all[0].team('lsa')
      const options = {
        resources: { first: { kind: 'llA2A', blocks: 1, slots: 1 }, last: { kind: 'buffer', byteLength: 8 } },
        teams: { all: { team }, again: { team } },
      } as const
      const made = await Promise.all(all.map((one) => one.createDeviceCommunicator(options)))
      await Promise.all(made.map((one) => one.dispose()))
      for (const wrong of [{ resources: { ...options.resources, wrong: { kind: 'llA2A' } } }, { teams: { all: {} } }]) {
        await expect(all[0].createDeviceCommunicator({ ...options, ...wrong } as never)).rejects.toThrow(TypeError)
      }
      deviceResourceNeeds(options.resources.first)
      expect(() => deviceResourceNeeds({ kind: 'buffer' } as never)).toThrow(TypeError)
    })
    expect(kept).toEqual([])
    await destroy(all)
  })

  test('memory, windows and signals', async () => {
    const all = await pair()
    const streams = ranks.map((rank) => new TestStream(rank))
    const kept = await nativeMemoryKept(async () => {
      const memory = await Promise.all(ranks.map((rank) => NcclMemory.allocate(rank, 4096)))
      await expect(NcclMemory.allocate(0, 2 ** 50)).rejects.toThrow('ncclMemAlloc')
      const windows = await Promise.all(all.map((one, rank) => one.registerWindow(memory[rank] as NcclMemory)))
      await Promise.all(windows.map((window) => window.dispose()))
      await Promise.all(memory.map((one) => one.free()))
      await groupOffThread(() => undefined)
      group(() => undefined)
    })
    expect(kept).toEqual([])
    for (const stream of streams) stream.dispose()
    await destroy(all)
  })
})

test('a completed wait leaves no timer', async () => {
  const timers = openTimers()
  const before = timers()
  const limit = { timeout: 600_000, signal: new AbortController().signal }
  const stream = new TestStream(0)
  const all = await Communicator.initAll([0, 1], limit)
  const [first, second] = all as [Communicator, Communicator]
  await first.ready(limit)
  await first.synchronize(stream, limit)
  const parts = await Promise.all(all.map((one) => one.split({ color: 0, ...limit })))
  await Promise.all(all.map((one) => one.suspend(limit)))
  await Promise.all(all.map((one) => one.resume(limit)))
  await groupOffThread(() => undefined, limit)
  const memory = await Promise.all([0, 1].map((device) => NcclMemory.allocate(device, 4096)))
  const windows = await Promise.all(all.map((one, rank) => one.registerWindow(memory[rank] as NcclMemory, limit)))
  expect(timers()).toBe(before)
  await Promise.all(windows.map((window) => window.dispose()))
  await Promise.all(memory.map((one) => one.free()))
  await parts[0]?.revoke(limit)
  await Promise.all(parts.map((one) => one?.abort()))
  expect(timers()).toBe(before)
  // A communicator that ends during its call on another thread.
  const waiting = first.split({ color: 0, ...limit }).catch(() => undefined)
  await Promise.all([first.abort(), second.abort(), waiting])
  expect(timers()).toBe(before)
  const [alone] = (await Communicator.initAll([0])) as [Communicator]
  const brief = alone.split({ color: 0 }).catch(() => undefined)
  await new Promise((resolve) => setImmediate(resolve))
  await Promise.all([alone.abort(), brief])
  expect(timers()).toBe(before)
  const id = UniqueId.create()
  const one = await Communicator.initRank({ device: 0, rank: 0, worldSize: 1, id, ...limit })
  await one.finalize(limit)
  await one.destroy(limit)
  expect(timers()).toBe(before)
  stream.dispose()
})
