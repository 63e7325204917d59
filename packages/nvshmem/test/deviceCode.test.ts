import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { anything, onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()
const launch = (options: object, kernel: unknown = 1n): (() => unknown) => {
  return () =>
    pe.session.deviceCode.launchCollectively(
      anything(kernel),
      anything({ grid: 1, block: 1, stream: null, ...options }),
    )
}

describe('DeviceCode', () => {
  test('prints in one line', () => {
    expect(inspect(pe.session.deviceCode)).toBe('DeviceCode { pe: 0, deviceOrdinal: 0 }')
  })

  test('tells when NVSHMEM refuses a module', async () => {
    await expect(pe.session.deviceCode.initializeModule({ handle: 1n })).rejects.toMatchObject({
      code: expect.stringMatching(/^NVSHMEMX_ERROR/),
      api: 'nvshmemx_cumodule_init',
    })
  })

  refuses(pe, [
    [
      'a module that is none',
      () => pe.session.deviceCode.initializeModule(anything({ handle: 5 })),
      'DeviceCode.initializeModule: module must be an object with a handle (a CUmodule), or the handle',
    ],
    ['a library that is none', () => pe.session.deviceCode.finalizeLibrary(anything(null)), /a CUlibrary.*, not null/],
    ['a kernel that is none', launch({}, 'k'), /kernel must be an object with a handle \(a CUfunction\)/],
    ['a block too large', launch({ block: 1025 }), 'block[0] must be an integer from 1 to 1024, not 1025'],
    ['a grid of four dimensions', launch({ grid: [1, 1, 1, 1] }), /grid must be a number or one to three numbers/],
    ['an unknown option', launch({ threads: 5 }), /only the keys grid, block, stream, sharedMemory, not 'threads'/],
    [
      'a parameter that is none',
      () => pe.session.deviceCode.launchCollectively(1n, { grid: 1, block: 1, stream: null }, anything(5)),
      'parameters[0] must be memory or { dtype, value }, not 5',
    ],
    ['threads that are too many', () => pe.session.deviceCode.blocksPerMultiprocessor(1n, 1025), RangeError],
  ])
})
