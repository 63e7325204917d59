import * as nvml from '@shoal/nvml-sys'
import { afterAll, expect, expectTypeOf, test } from 'vitest'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never

test.each([
  [
    'a number for a device',
    () => nvml.nvmlDeviceGetName(wrong(5), new Uint8Array(96), 96),
    TypeError,
    /^nvmlDeviceGetName: device must be a bigint/,
  ],
  [
    'a text with NUL',
    () => nvml.nvmlDeviceGetHandleByUUID('GPU-\0', new BigUint64Array(1)),
    TypeError,
    /^nvmlDeviceGetHandleByUUID: uuid /,
  ],
  [
    'a negative index',
    () => nvml.nvmlDeviceGetHandleByIndex(-1, new BigUint64Array(1)),
    RangeError,
    /^nvmlDeviceGetHandleByIndex: index /,
  ],
  [
    'a struct that is too small',
    () => nvml.nvmlDeviceGetMemoryInfo_v2(null, new Uint8Array(nvml.nvmlMemory_t.size)),
    RangeError,
    /^nvmlDeviceGetMemoryInfo_v2: memory must be memory of at least 40 bytes, not of 24/,
  ],
  [
    'an array with less than one element',
    () => nvml.nvmlDeviceGetComputeRunningProcesses(null, new Uint32Array(1), new Uint8Array(8)),
    RangeError,
    /^nvmlDeviceGetComputeRunningProcesses: infos /,
  ],
  [
    'a mask of more than 64 bits',
    () => nvml.nvmlDeviceRegisterEvents(null, 2n ** 64n, null),
    RangeError,
    /^nvmlDeviceRegisterEvents: eventTypes /,
  ],
])('%s is refused by function and parameter, before the library is searched', (_what, call, kind, message) => {
  expect(call).toThrow(kind)
  expect(call).toThrow(message)
})

test('each kind of handle is a distinct type (checked by tsc)', () => {
  expectTypeOf<bigint>().not.toExtend<nvml.nvmlDevice_t>()
  expectTypeOf<nvml.nvmlUnit_t>().not.toExtend<nvml.nvmlDevice_t>()
  expectTypeOf<nvml.nvmlGpuInstance_t>().not.toExtend<nvml.nvmlComputeInstance_t>()
})

test('statuses and constants have the values of the header', () => {
  expect(nvml.nvmlReturn_t.NVML_ERROR_NOT_SUPPORTED).toBe(3)
  expect(nvml.nvmlReturn_t.NVML_ERROR_UNKNOWN).toBe(999)
  expect(nvml.nvmlClockType_t.NVML_CLOCK_MEM).toBe(2)
  expect(nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE).toBe(96)
  expect(nvml.nvmlEventTypeXidCriticalError).toBe(8)
})

test('a version constant contains the size of its struct and its version', () => {
  expect(nvml.nvmlMemory_v2).toBe(nvml.nvmlMemory_v2_t.size + 2 * 2 ** 24)
  expect(nvml.nvmlPciInfoExt_v1).toBe(nvml.nvmlPciInfoExt_v1_t.size + 2 ** 24)
  const memory = nvml.nvmlMemory_v2_t.allocate({ version: nvml.nvmlMemory_v2 })
  expect(new Uint32Array(memory.buffer)[0]).toBe(nvml.nvmlMemory_v2)
})

afterAll(() => {
  expect(nvml.nvml.isLoaded).toBe(false)
})
