import { useSoftwareDevice } from '@shoal/ffi'
import { Session, UniqueId } from '@shoal/nvshmem'
import { NVSHMEMX_INIT_ATTR_INITIALIZER, nvshmemx_init_attr_t } from '@shoal/nvshmem-sys'
import { expect, test } from 'vitest'

useSoftwareDevice()
const place = { device: 0, rank: 0, worldSize: 1 } as const

test.each([
  ['bytes' as never, TypeError, 'rawAttributes must be a Uint8Array'],
  [new Uint8Array(8), RangeError, `an nvshmemx_init_attr_t of ${nvshmemx_init_attr_t.size} to 4096 bytes, not 8`],
  [new Uint8Array(5000), RangeError, 'to 4096 bytes, not 5000'],
])('Session.init refuses raw attributes of a wrong kind or size', async (rawAttributes, type, words) => {
  const started = Session.init({ ...place, id: UniqueId.create(), rawAttributes })
  await expect(started).rejects.toThrow(type)
  await expect(started).rejects.toThrow('Session.init: rawAttributes must be')
  await expect(started).rejects.toThrow(words)
})

test('Session.init accepts raw attributes of a newer header', async () => {
  const rawAttributes = new Uint8Array(nvshmemx_init_attr_t.size + 16)
  nvshmemx_init_attr_t.write(rawAttributes, NVSHMEMX_INIT_ATTR_INITIALIZER)
  const session = await Session.init({ ...place, id: UniqueId.create(), rawAttributes })
  expect([session.pe, session.peCount]).toEqual([0, 1])
  await session.finalize()
})
