import * as nvshmem from '@shoal/nvshmem-sys'
import { afterAll, expect, expectTypeOf, test } from 'vitest'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never
const { NVSHMEM_TEAM_WORLD } = nvshmem.nvshmem_team_id_t

test.each([
  [
    'a bigint for a team',
    () => nvshmem.nvshmem_team_my_pe(wrong(0n)),
    TypeError,
    /^nvshmem_team_my_pe: team must be an integer/,
  ],
  [
    'undefined for symmetric memory',
    () => nvshmem.nvshmem_putmem(wrong(undefined), 1n, 1, 0),
    TypeError,
    /^nvshmem_putmem: dest /,
  ],
  ['a negative count', () => nvshmem.nvshmem_float_put(1n, 1n, -1, 0), RangeError, /^nvshmem_float_put: nelems /],
  ['a fraction for a PE', () => nvshmem.nvshmem_float_put(1n, 1n, 1, 0.5), RangeError, /^nvshmem_float_put: pe /],
  [
    'a bigint for a float',
    () => nvshmem.nvshmem_float_p(1n, wrong(1n), 0),
    TypeError,
    /^nvshmem_float_p: value must be a number/,
  ],
  ['a char beyond a char', () => nvshmem.nvshmem_char_p(1n, 128, 0), RangeError, /^nvshmem_char_p: value /],
  ['half as a float', () => nvshmem.nvshmem_half_p(1n, 0.5, 0), RangeError, /^nvshmem_half_p: value /],
  [
    'a number for a stream',
    () => nvshmem.nvshmemx_quiet_on_stream(wrong(7)),
    TypeError,
    /^nvshmemx_quiet_on_stream: cstrm must be a bigint/,
  ],
  [
    'a stream above 64 bits',
    () => nvshmem.nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, nvshmem.cudaStream_t(2n ** 64n)),
    RangeError,
    /^nvshmemx_barrier_on_stream: stream /,
  ],
  [
    'a signal above 64 bits',
    () => nvshmem.nvshmemx_signal_op_on_stream(1n, 2n ** 64n, 9, 0, null),
    RangeError,
    /^nvshmemx_signal_op_on_stream: signal /,
  ],
  [
    'a ptrdiff_t beyond its range',
    () => nvshmem.nvshmem_int_iput(1n, 1n, 2n ** 63n, 1, 1, 0),
    RangeError,
    /^nvshmem_int_iput: dst /,
  ],
  [
    'a version that is too short, by value',
    () => nvshmem.nvshmemid_hostlib_init_attr(0, null, 0, null, new Uint8Array(11), null),
    RangeError,
    /^nvshmemid_hostlib_init_attr: nvshmem_device_lib_version /,
  ],
])('%s is refused by function and parameter, before the library is searched', (_what, call, kind, message) => {
  expect(call).toThrow(kind)
  expect(call).toThrow(message)
})

test('PE numbers and teams are distinct types, and streams are CUDA streams (checked by tsc)', () => {
  expectTypeOf<number>().not.toExtend<nvshmem.nvshmem_team_t>()
  expectTypeOf<nvshmem.nvshmemx_team_t>().toEqualTypeOf<nvshmem.nvshmem_team_t>()
  expectTypeOf(NVSHMEM_TEAM_WORLD).toEqualTypeOf<nvshmem.nvshmem_team_t>()
  expectTypeOf<Parameters<typeof nvshmem.nvshmem_team_my_pe>[0]>().toEqualTypeOf<nvshmem.nvshmem_team_t>()
  expectTypeOf<bigint>().not.toExtend<nvshmem.cudaStream_t>()
  expectTypeOf<nvshmem.CUmodule>().not.toExtend<nvshmem.CUlibrary>()
  expectTypeOf<ReturnType<typeof nvshmem.nvshmem_double_g>>().toEqualTypeOf<number>()
  expectTypeOf<ReturnType<typeof nvshmem.nvshmem_long_g>>().toEqualTypeOf<bigint>()
  expectTypeOf<ReturnType<typeof nvshmem.nvshmem_malloc>>().toEqualTypeOf<bigint>()
})

test('constants have the values of the C header', () => {
  expect(nvshmem.nvshmemx_init_flags.NVSHMEMX_INIT_WITH_UNIQUEID).toBe(8)
  expect(nvshmem.nvshmem_team_id_t).toMatchObject({
    NVSHMEM_TEAM_INVALID: -1,
    NVSHMEM_TEAM_WORLD: 0,
    NVSHMEM_TEAM_SHARED: 1,
    NVSHMEMX_TEAM_NODE: 2,
  })
  expect(nvshmem.nvshmemx_signal_op_t).toEqual({ NVSHMEM_SIGNAL_SET: 9, NVSHMEM_SIGNAL_ADD: 10 })
  expect(nvshmem.nvshmemx_status.NVSHMEMX_ERROR_INTERNAL).toBe(7)
  expect(nvshmem.nvshmemx_cmp_type_t).toMatchObject({ NVSHMEM_CMP_EQ: 0, NVSHMEM_CMP_NE: 1, NVSHMEM_CMP_GE: 5 })
})

test('inline functions of the header without an exported symbol are omitted', () => {
  for (const name of ['nvshmem_init', 'nvshmem_finalize', 'nvshmemx_init_attr', 'nvshmem_realloc'])
    expect(nvshmem).not.toHaveProperty(name)
})

test('initial structures contain the sizes of their codecs', () => {
  const { structVersion } = nvshmem
  expect(nvshmem.NVSHMEMX_UNIQUEID_INITIALIZER.version).toBe(structVersion(nvshmem.nvshmemx_uniqueid_t.size))
  expect(nvshmem.NVSHMEMX_UNIQUEID_ARGS_INITIALIZER.version).toBe(structVersion(nvshmem.nvshmemx_uniqueid_args_t.size))
  expect(nvshmem.NVSHMEMX_INIT_ARGS_INITIALIZER.version).toBe(structVersion(nvshmem.nvshmemx_init_args_t.size))
  expect(nvshmem.NVSHMEMX_INIT_ATTR_INITIALIZER.version).toBe(structVersion(nvshmem.nvshmemx_init_attr_t.size))
  expect(nvshmem.NVSHMEM_TEAM_CONFIG_INITIALIZER.version).toBe(structVersion(nvshmem.nvshmem_team_config_t.size, 2))
  const team = nvshmem.nvshmem_team_config_t.allocate(nvshmem.NVSHMEM_TEAM_CONFIG_INITIALIZER)
  expect([...new Int32Array(team.buffer, team.byteOffset, 4)]).toEqual([0x20040, -1, -1, -1])
  const attributes = nvshmem.nvshmemx_init_attr_t.allocate(nvshmem.NVSHMEMX_INIT_ATTR_INITIALIZER)
  const words = new Int32Array(attributes.buffer, attributes.byteOffset, 12)
  expect([...words]).toEqual([0x10090, 0, 0, 0, 0x10080, 0, 0x10018, 0, 0, 0, -1, -1])
})

test('version numbers are formatted as text', () => {
  expect(nvshmem.formatNvshmemVersion(30405)).toBe('3.4.5')
  expect(nvshmem.formatNvshmemVersion(30000)).toBe('3.0.0')
  expect(nvshmem.formatNvshmemVersion(30310)).toBe('3.3.10')
  expect(nvshmem.NVSHMEM_VENDOR_VERSION).toBe(30405)
})

afterAll(() => {
  expect(nvshmem.nvshmem.isLoaded).toBe(false)
})
