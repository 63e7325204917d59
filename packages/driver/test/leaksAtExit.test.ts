import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const program = `
  const { Device, DeviceBuffer, PinnedBuffer } = await import(${JSON.stringify(import.meta.resolve('@shoal/driver'))})
  const [way] = process.argv.slice(1)
  const marks = []
  for (const device of Device.all()) {
    const buffer = DeviceBuffer.from(device, Float32Array.of(1, 2, 3))
    const stream = device.createStream()
    await Promise.all([buffer.toArray(), buffer.toArray({ stream }), stream.synchronize()])
    if (way === 'marked') marks.push(stream.record())
    stream.dispose()
    if (way !== 'kept') buffer.dispose()
  }
  if (way === 'exit') process.exit(3)
  if (way === 'thrown') throw new Error('ends the process')`

function run(way: string): { readonly status: number | null; readonly left: string[] } {
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program, way], {
    encoding: 'utf8',
    env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2', SHOAL_SIM_LEAKS: '1' },
  })
  return { status, left: stderr.split('\n').filter((line) => line.includes('left at exit')) }
}

test.each([
  ['ends', 0],
  ['exit', 3],
  ['thrown', 1],
])('the package leaves none of its internal resources at exit (%s)', (way, status) => {
  expect(run(way)).toEqual({ status, left: [] })
})

test('undisposed objects and their context remain at exit, because freeing could wait for work', () => {
  const { status, left } = run('kept')
  expect(status).toBe(0)
  expect(left[0]).toBe('shoal: left at exit: 2 device allocations, 24 bytes')
  expect(left.join('\n')).toMatch(/page-locked allocations.*\n.* streams\n.* events$/)
})

test('the event of an undisposed stream with no work remaining keeps only the event itself', () => {
  expect(run('marked')).toEqual({ status: 0, left: ['shoal: left at exit: 2 events'] })
})
