import { afterAll, expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const driver = await import('@shoal/driver')
const { Event, elapsedMs, Stream } = await import('@shoal/runtime')

const device = driver.Device.get(0)
const context = device.primaryContext

afterAll(() => device.dispose())

test('either package records the events of the other, and reads the time between them', async () => {
  using ours = Stream.create()
  using theirs = device.createStream()
  using first = Event.create({ timing: true })
  using second = device.createEvent({ timing: true })
  expect(theirs.record(first)).toBe(first)
  expect(ours.record(second)).toBe(second)
  await Promise.all([first.synchronize(), second.synchronize()])
  expect(elapsedMs(first, second)).toBeTypeOf('number')
  expect(driver.elapsedMs(first, second)).toBeTypeOf('number')
  first.dispose()
  expect(() => theirs.record(first)).toThrow('Event was disposed')
  expect(() => theirs.record({} as never)).toThrow('event must be an Event, not a plain object')
})

test.each([
  ['runtime', () => device.createStream(), (stream: object) => Stream.from(stream as never)],
  ['driver', () => Stream.create(), (stream: object) => driver.Stream.from(context, stream as never)],
])('a stream converted for the %s goes without a word once the one it came from is gone', async (_, make, convert) => {
  const made = make()
  const converted = convert(made)
  made.dispose()
  await converted[Symbol.asyncDispose]()
  expect(converted.disposed).toBe(true)
})

test('so does a stream whose device was reset', async () => {
  const stream = device.createStream()
  await device.reset()
  await stream[Symbol.asyncDispose]()
  expect(stream.disposed).toBe(true)
})
