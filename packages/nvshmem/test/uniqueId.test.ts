import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { useSoftwareDevice } from '@shoal/ffi'
import { UniqueId } from '@shoal/nvshmem'
import { describe, expect, test } from 'vitest'

useSoftwareDevice({ devices: 1 })

const bytes = UniqueId.create().toBytes()
const anything = (value: unknown): never => value as never

describe('UniqueId', () => {
  test('has 128 bytes, which differ from id to id', () => {
    expect([UniqueId.byteLength, bytes.byteLength]).toEqual([128, 128])
    expect(UniqueId.create().toBytes()).not.toEqual(bytes)
  })

  test('survives conversion to bytes, text and JSON', () => {
    const id = UniqueId.fromBytes(bytes)
    expect(UniqueId.fromBase64(id.toString()).equals(id)).toBe(true)
    expect(UniqueId.fromBase64(JSON.parse(JSON.stringify(id)) as string).toBytes()).toEqual(bytes)
  })

  test('copies the bytes it is made from and the bytes it returns', () => {
    const given = Uint8Array.from(bytes)
    const id = UniqueId.fromBytes(given)
    given.fill(0)
    id.toBytes().fill(0)
    expect(id.toBytes()).toEqual(bytes)
  })

  test('equals ids with the same bytes, and nothing else', () => {
    const id = UniqueId.fromBytes(bytes)
    expect(id.equals(UniqueId.fromBytes(bytes))).toBe(true)
    for (const other of [UniqueId.create(), bytes, id.toString(), null, undefined]) expect(id.equals(other)).toBe(false)
  })

  test('prints in one line', () => {
    const id = UniqueId.fromBytes(bytes)
    expect(inspect(id)).toBe(`UniqueId { base64: '${id.toString().slice(0, 57)}…' }`)
    expect(Object.prototype.toString.call(id)).toBe('[object UniqueId]')
  })

  test.for([
    [
      'bytes of another length',
      () => UniqueId.fromBytes(bytes.subarray(1)),
      'bytes must be the 128 bytes of an id, not 127',
    ],
    [
      'a value other than a Uint8Array',
      () => UniqueId.fromBytes(anything([...bytes])),
      'UniqueId.fromBytes: bytes must be a Uint8Array',
    ],
    ['an id of another library', () => UniqueId.fromBytes(new Uint8Array(128)), 'bytes must be an id of NVSHMEM'],
    ['damaged text', () => UniqueId.fromBase64(`!${Buffer.from(bytes).toString('base64')}`), 'text must be base64'],
    ['text of another length', () => UniqueId.fromBase64('AAAA'), 'text must be the 128 bytes of an id, not 3'],
    [
      'a value other than text',
      () => UniqueId.fromBase64(anything(5)),
      'UniqueId.fromBase64: text must be a string, not 5',
    ],
  ] as const)('refuses %s', ([, make, message]) => {
    expect(make).toThrow(message)
  })

  test('of another copy of the package is refused with the paths of both', () => {
    const program = `
      import { Session, UniqueId } from '@shoal/nvshmem'
      const copy = await import('${new URL('../dist/index.js?copy', import.meta.url)}')
      const id = copy.UniqueId.create()
      const refused = (error) => console.log(id instanceof UniqueId, error.name, error.message)
      await Session.init({ device: 0, rank: 0, worldSize: 1, id }).catch(refused)`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      encoding: 'utf8',
      env: { ...process.env, SHOAL_DEVICE: 'sim', NODE_OPTIONS: '' },
    })
    expect(stderr.replace(/^shoal: software device.*\n/, '')).toBe('')
    expect(stdout).toMatch(
      /^false TypeError Session\.init: id must be a UniqueId of the copy of the package at file:.*, not of the copy at file:.*\?copy/,
    )
  })
})
