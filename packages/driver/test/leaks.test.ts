import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

test('dropped objects are reported and freed, and reachable objects are kept', async () => {
  const result = await runFixture('leaks.mjs', undefined, { nodeArguments: ['--expose-gc', '--no-warnings'] })
  expect(result.code).toBe(0)
  const { warnings, before, after, kept } = JSON.parse(result.stdout)
  expect(warnings.every((warning: { name: string }) => warning.name === 'ShoalLeakWarning')).toBe(true)
  const messages = warnings.map((warning: { message: string }) => warning.message).sort()
  expect(messages).toEqual([
    expect.stringContaining('A CachingPool of device 0 was dropped without dispose()'),
    expect.stringMatching(
      /^A DeviceBuffer of 100 bytes .* was dropped without dispose\(\); its memory is back in its pool/,
    ),
    expect.stringContaining('A DeviceBuffer of 20000000 bytes on device 0 was dropped without dispose()'),
    expect.stringContaining('A DeviceBuffer of 40000000 bytes on device 0 was dropped without dispose()'),
    expect.stringContaining('A PinnedBuffer of 1000 bytes was dropped without dispose()'),
    expect.stringContaining('A Stream of device 0 was dropped without dispose()'),
    expect.stringContaining('An Event of device 0 was dropped without dispose()'),
  ])
  expect(before - after).toBeLessThan(1_000_000)
  expect(kept).toEqual({ array: [1, 2, 3], view: [5, 6], warnings: 7 })
})

test('SHOAL_TRACE_LEAKS=1 adds the place where the object was made', async () => {
  const result = await runFixture(
    'leaks.mjs',
    { SHOAL_DEVICE: 'sim', SHOAL_TRACE_LEAKS: '1' },
    { nodeArguments: ['--expose-gc', '--no-warnings'] },
  )
  const { warnings } = JSON.parse(result.stdout)
  for (const { message } of warnings) expect(message).toMatch(/made at [\s\S]*leaks\.mjs/)
})

test('many leaks of one kind are reported in one warning with their count', async () => {
  const program = String.raw`
    import { setTimeout as sleep } from 'node:timers/promises'
    import { Device, DeviceBuffer } from '@shoal/driver'
    const warnings = []
    process.on('warning', ({ message }) => warnings.push(message))
    const device = Device.get(0)
    const drop = () => {
      for (let index = 0; index < 50; index += 1) device.createEvent()
      for (let index = 1; index <= 20; index += 1) DeviceBuffer.allocate(device, 'u8', index * 4096)
      device.createStream()
      // More than are held until the turn ends, and most of them disposed of by then.
      for (let index = 0; index < 3000; index += 1) {
        const buffer = DeviceBuffer.allocate(device, 'u8', 16)
        if (index % 10 !== 0) buffer.dispose()
      }
    }
    drop()
    const told = () => warnings.reduce((sum, message) => sum + Number(/^(\d+) objects/.exec(message)?.[1] ?? 1), 0)
    for (let round = 0; round < 40 && told() < 371; round += 1) {
      await sleep(20)
      globalThis.gc()
    }
    console.log(JSON.stringify({ warnings, told: told() }))`
  const folder = fileURLToPath(new URL('..', import.meta.url))
  const options = ['--expose-gc', '--no-warnings', '--input-type=module', '-e', program]
  const { stdout } = spawnSync(process.execPath, options, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, SHOAL_DEVICE: 'sim', NODE_OPTIONS: '' },
  })
  const { warnings, told } = JSON.parse(stdout) as { warnings: string[]; told: number }
  expect(told).toBe(371)
  // The collector may find the objects in several runs, each of which warns separately.
  expect(warnings.length).toBeLessThan(20)
  expect(warnings).toContainEqual(
    expect.stringMatching(/^\d+ objects like this: An Event of device 0 was dropped without dispose\(\); /),
  )
  expect(warnings).toContainEqual(
    expect.stringMatching(/^\d+ objects like this: A DeviceBuffer of \d+ bytes on device 0/),
  )
  expect(warnings).toContainEqual(expect.stringMatching(/^A Stream of device 0 was dropped without dispose\(\)/))
})
