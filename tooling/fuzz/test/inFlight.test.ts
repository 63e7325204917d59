/** Repeats, one by one, the situations in which random sequences found a fault. */
import { Device, DeviceBuffer, Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { Communicator, groupOffThread } from '@shoal/nccl'
import { DisposedError } from '@shoal/types'
import { expect, test } from 'vitest'

useSoftwareDevice({ devices: 2 })

test('operands of a group disposed while its thread makes the calls cause no harm', async () => {
  const devices = Device.all()
  const communicators = await Communicator.initAll(devices)
  let made = 0
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const streams = devices.map((device) => Stream.create(device))
    const buffers = devices.map((device) => DeviceBuffer.from(device, Float32Array.of(1, 2)))
    const group = groupOffThread(() => {
      for (const [rank, communicator] of communicators.entries()) {
        const [buffer, stream] = [buffers[rank] as DeviceBuffer, streams[rank] as Stream]
        communicator.allReduce(buffer, buffer, { stream })
      }
    })
    for (let turn = 0; turn < attempt % 10; turn += 1) await null
    for (const owner of [...streams, ...buffers]) owner.dispose()
    await group.then(
      () => (made += 1),
      (error: unknown) => expect(error).toBeInstanceOf(DisposedError),
    )
    expect(communicators.map(({ disposed }) => disposed)).toEqual([false, false])
  }
  // If all groups or none succeed, the test did not dispose of objects while the thread made calls.
  expect(made).toBeGreaterThan(0)
  expect(made).toBeLessThan(200)
  for (const device of devices) await device.synchronize()
  await Promise.all(communicators.map((communicator) => communicator.destroy()))
})
