import { closeSync, fstatSync, openSync } from 'node:fs'
import { closeDescriptor, DescriptorSocket, duplicateDescriptor } from '@shoal/ffi'
import { descriptorKind } from '@shoal/ffi/calls'
import { SystemError } from '@shoal/types'
import { expect, test } from 'vitest'

test('a duplicate descriptor has another number and stays open when the first is closed', () => {
  const descriptor = openSync('/dev/null', 'r')
  const duplicate = duplicateDescriptor(descriptor)
  expect(duplicate).not.toBe(descriptor)
  expect(fstatSync(duplicate)).toMatchObject({ rdev: fstatSync(descriptor).rdev, ino: fstatSync(descriptor).ino })
  closeDescriptor(descriptor)
  expect(() => fstatSync(descriptor)).toThrow('EBADF')
  closeSync(duplicate)
})

test('descriptorKind() asks the system, whichever code opened the descriptor', () => {
  const [socket, other] = DescriptorSocket.pair()
  const [file, folder, device] = [process.execPath, '/', '/dev/null'].map((path) => openSync(path, 'r'))
  try {
    const all = [file, folder, device, socket.descriptor] as number[]
    expect(all.map((one) => descriptorKind(one))).toEqual(['file', 'folder', 'other', 'socket'])
  } finally {
    for (const one of [file, folder, device]) closeSync(one as number)
    for (const end of [socket, other]) end.dispose()
  }
})

test.each([closeDescriptor, duplicateDescriptor, descriptorKind])('$name describes a wrong descriptor', (act) => {
  for (const wrong of [-1, 2 ** 31, 1.5, '1']) {
    expect(() => act(wrong as never)).toThrow(`${act.name}: descriptor must be an integer from 0 to 2147483647, not `)
  }
  expect(() => act(2 ** 31 - 1)).toThrow(SystemError)
  expect(() => act(2 ** 31 - 1)).toThrow(expect.objectContaining({ code: 'EBADF' }))
})
