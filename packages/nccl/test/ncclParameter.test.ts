import { inspect } from 'node:util'
import { NcclParameter } from '@shoal/nccl'
import { StatusError } from '@shoal/types'
import { beforeAll, expect, test } from 'vitest'
import { errorOf, startSoftwareDevice } from './fixtures/device.js'

beforeAll(() => startSoftwareDevice())

test('NcclParameter lists all names, and reads values with their types', () => {
  const keys = NcclParameter.keys()
  expect(keys).toContain('NCCL_DEBUG')
  expect(new Set(keys).size).toBe(keys.length)
  for (const key of keys) {
    const parameter = NcclParameter.bind(key)
    expect(parameter.key).toBe(key)
    expect(parameter.text).toBe(NcclParameter.read(key))
    const { type, value } = parameter
    if (type === undefined) expect(value).toBe(parameter.text)
    else if (type === 'text') expect(value).toBe(parameter.readText())
    else {
      expect(value).toBe(parameter.readInteger(type))
      const bits = Number(type.slice(1))
      expect(typeof value).toBe(bits === 64 ? 'bigint' : 'number')
      expect(parameter.bytes).toHaveLength(bits / 8)
    }
  }
  NcclParameter.dump()
})

test('NcclParameter refuses names unknown to NCCL, and another type', () => {
  for (const call of [() => NcclParameter.bind('NCCL_NO_SUCH'), () => NcclParameter.read('NCCL_NO_SUCH')]) {
    expect(errorOf(call)).toBeInstanceOf(StatusError)
    expect(errorOf(call)).toMatchObject({ code: 'ncclInvalidArgument' })
  }
  const parameter = NcclParameter.bind('NCCL_DEBUG')
  expect(() => parameter.readInteger('f32' as never)).toThrow(TypeError)
  expect(() => NcclParameter.bind(undefined as never)).toThrow(TypeError)
  expect(() => NcclParameter.read('A\0B')).toThrow(TypeError)
})

test('NcclParameter prints one line', () => {
  expect(inspect(NcclParameter.bind('NCCL_DEBUG'))).toBe("NcclParameter { key: 'NCCL_DEBUG' }")
})
