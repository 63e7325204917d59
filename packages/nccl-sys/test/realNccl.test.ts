import { existsSync, readFileSync } from 'node:fs'
import { NativeMemory, readCString } from '@shoal/ffi'
import * as nccl from '@shoal/nccl-sys'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { moduleRunner } from '../../ffi/test/support/stub.js'

const runModule = moduleRunner(new URL('../', import.meta.url))

interface Spec {
  functions: { name: string; since: number }[]
}

const spec = JSON.parse(
  readFileSync(new URL('../../../tooling/bindgen/spec/nccl.json', import.meta.url), 'utf8'),
) as Spec

function missing(): string | undefined {
  try {
    nccl.nccl.load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnccl on this machine: set SHOAL_NCCL_LIBRARY'
    throw error
  }
}

const reason = missing()

/** Returns why a test that needs a version cannot run, or undefined. */
function missingOrOlder(since: number): string | undefined {
  if (reason !== undefined) return reason
  const installed = nccl.nccl.version as number
  return installed < since ? `NCCL ${nccl.formatNcclVersion(installed)} does not have it` : undefined
}

const eightRanks = nccl.ncclTeam.allocate({ nRanks: 8, rank: 3, stride: 1 })

describe('the real libnccl', () => {
  test('returns its version', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const version = new Int32Array(1)
    expect(nccl.ncclGetVersion(version)).toBe(nccl.ncclResult_t.ncclSuccess)
    expect(version[0]).toBeGreaterThanOrEqual(21000)
    expect(nccl.nccl.version).toBe(version[0])
  })

  test('has every function of its version and earlier versions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const installed = nccl.nccl.version as number
    const expected = spec.functions.filter(({ since }) => since <= installed)
    expect(expected.length).toBeGreaterThan(30)
    expect(expected.filter(({ name }) => !nccl.nccl.has(name)).map(({ name }) => name)).toEqual([])
  })

  test('exports exactly the listed functions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const name = `libnccl-${nccl.nccl.versionText}.symbols.txt`
    const file = new URL(`../../../tooling/bindgen/abi/${name}`, import.meta.url)
    if (!existsSync(file)) return skip(`no ${name}`)
    const listed = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    const exported = new Set(Object.keys(nccl))
    expect(listed.filter((symbol) => !nccl.nccl.has(symbol))).toEqual([])
    expect(listed.filter((symbol) => !exported.has(symbol))).toEqual([])
    const others = spec.functions.filter((entry) => !listed.includes(entry.name))
    expect(others.filter((entry) => nccl.nccl.has(entry.name)).map((entry) => entry.name)).toEqual([])
  })

  test('has a different message for each error', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const { ncclNumResults: _, ...codes } = nccl.ncclResult_t
    const texts = Object.values(codes).map((code) => readCString(nccl.ncclGetErrorString(code)) ?? '')
    for (const text of texts) expect(text.length).toBeGreaterThan(3)
    expect(new Set(texts).size).toBeGreaterThanOrEqual(texts.length - 1)
    expect(readCString(nccl.ncclGetErrorString(nccl.ncclResult_t.ncclInvalidUsage))).toContain('usage')
    expect(readCString(nccl.ncclGetErrorString(99 as nccl.ncclResult_t))).toContain('unknown')
  })

  test('returns unique ids that differ', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [one, other] = [new Uint8Array(128), new Uint8Array(128)]
    expect(nccl.ncclGetUniqueId(one)).toBe(nccl.ncclResult_t.ncclSuccess)
    expect(nccl.ncclGetUniqueId(other)).toBe(nccl.ncclResult_t.ncclSuccess)
    expect(one).not.toEqual(other)
  })

  test('refuses a null communicator with a status instead of a crash', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const count = new Int32Array(1)
    expect(nccl.ncclCommCount(null, count)).toBe(nccl.ncclResult_t.ncclInvalidArgument)
    expect(readCString(nccl.ncclGetLastError(null))).toMatch(/\w/)
  })

  test('resets its debug level and reads it again', ({ skip }) => {
    if (missingOrOlder(22809) !== undefined) return skip(missingOrOlder(22809))
    expect(nccl.ncclResetDebugInitInternal()).toBeUndefined()
    expect(nccl.ncclCommCount(null, new Int32Array(1))).toBe(nccl.ncclResult_t.ncclInvalidArgument)
  })

  test('counts slots for elements of any size, in units of 8 bytes', ({ skip }) => {
    if (missingOrOlder(22803) !== undefined) return skip(missingOrOlder(22803))
    expect([nccl.ncclLLA2ACalcSlots(100, 16), nccl.ncclLLA2ACalcSlots(7, 4), nccl.ncclLLA2ACalcSlots(3, 9)]).toEqual([
      200, 7, 6,
    ])
  })

  test('computes requirements, of a team by value, with the offset of the handle', ({ skip }) => {
    if (missingOrOlder(22907) !== undefined) return skip(missingOrOlder(22907))
    const handle = NativeMemory.allocate(16)
    const requirements = NativeMemory.allocate(nccl.ncclDevResourceRequirements.size)
    const read = () => nccl.ncclDevResourceRequirements.read(requirements)

    expect(nccl.ncclLsaBarrierCreateRequirement(eightRanks, 5, handle, requirements)).toBe(0)
    // Three numbers of four bytes per barrier, and one per barrier and rank.
    expect(read()).toMatchObject({ bufferSize: 4n * (3n * 5n + 5n * 8n), outBufferHandle: handle.address })
    expect(nccl.ncclLsaBarrierHandle.read(handle).nBarriers).toBe(5)

    expect(nccl.ncclLLA2ACreateRequirement(4, 10, handle, requirements)).toBe(0)
    expect(read()).toMatchObject({ bufferAlign: 16n, outBufferHandle: handle.address })
    expect(nccl.ncclLLA2AHandle.read(handle).nSlots).toBe(10)

    expect(nccl.ncclGinBarrierCreateRequirement(null, eightRanks, 4, handle, requirements)).toBe(0)
    expect(read()).toMatchObject({ ginSignalCount: 4 * 8, outGinSignalStart: handle.address })

    expect(nccl.ncclGinOutboxCreateRequirement(4, 10, handle, requirements)).toBe(0)
    expect(nccl.ncclGinOutboxHandle.read(handle).size_log2).toBe(10)

    expect(nccl.ncclGinInboxA2ACreateRequirement(eightRanks, 4, 10, handle, requirements)).toBe(0)
    expect(nccl.ncclGinInboxA2AHandle.read(handle).size_log2).toBe(10)
    expect(read()).toMatchObject({ outBufferHandle: handle.address, outGinSignalStart: handle.address + 4n })
  })

  test('takes and returns teams by value', ({ skip }) => {
    if (missingOrOlder(22803) !== undefined) return skip(missingOrOlder(22803))
    // Zeros replace a communicator, as rank 0 of none, because these functions read nothing else. They run in a
    // separate process, because the fields may have other offsets in another version.
    const lines = runModule(
      `import { NativeMemory } from '@shoal/ffi'
       import * as n from '@shoal/nccl-sys'
       const comm = n.ncclComm_t(NativeMemory.allocate(1 << 23).address)
       const rankToWorld = (stride) => n.ncclTeamRankToWorld(comm, n.ncclTeam.allocate({ nRanks: 4, rank: 2, stride }), 3)
       console.log(JSON.stringify([n.ncclTeamWorld(comm), rankToWorld(3), rankToWorld(-1_000_000)]))`,
    )
    expect(JSON.parse(lines.at(-1) as string)).toEqual([{ nRanks: 0, rank: 0, stride: 1 }, 3, -1_000_000])
  })

  test('refuses null communicators and windows of the device API by status', ({ skip }) => {
    if (missingOrOlder(22902) !== undefined) return skip(missingOrOlder(22902))
    // In a separate process, in case one of them crashes.
    const lines = runModule(
      `import * as n from '@shoal/nccl-sys'
       const out = new BigUint64Array(1), comm = new Uint8Array(n.ncclDevComm.size)
       const multimem = n.ncclMultimemHandle.allocate({ mcBasePtr: 0x1000n })
       console.log(JSON.stringify([
         n.ncclCommQueryProperties(null, n.initialNcclCommProperties()),
         n.ncclDevCommCreate(null, n.initialNcclDevCommRequirements(), comm),
         n.ncclDevCommDestroy(null, comm),
         n.ncclGetLsaDevicePointer(null, 0, 0, out),
         n.ncclGetPeerDevicePointer(null, 0, 0, out),
         n.ncclGetLsaMultimemDevicePointer(null, 0, out),
         n.ncclGetMultimemDevicePointer(null, 0, multimem, out),
       ]))`,
    )
    expect(JSON.parse(lines.at(-1) as string)).toEqual(Array(7).fill(nccl.ncclResult_t.ncclInvalidArgument))
  })

  test('lists its parameters', ({ skip }) => {
    if (missingOrOlder(23003) !== undefined) return skip(missingOrOlder(23003))
    const types = ['I8', 'I16', 'I32', 'I64', 'U8', 'U16', 'U32', 'U64']
    const lines = runModule(
      `import { readCString, readMemory } from '@shoal/ffi'
       import * as n from '@shoal/nccl-sys'
       const table = new BigUint64Array(1), length = new Int32Array(1), text = new BigUint64Array(1), handle = new BigUint64Array(1)
       const status = n.ncclParamGetAllParameterKeys(table, length)
       const keys = Array.from(new BigUint64Array(readMemory(table[0], 8 * length[0]).buffer), readCString)
       const told = {}
       for (const key of keys) {
         n.ncclParamBind(handle, key)
         const h = n.ncclParamHandle_t(handle[0]), bytes = new Uint8Array(64)
         const types = ${JSON.stringify(types)}.filter((type) => n['ncclParamGet' + type](h, new Uint8Array(8)) === 0)
         if (n.ncclParamGetStr(h, text) === 0) types.push('Str')
         const raw = n.ncclParamGet(h, bytes, 64, length) === 0 ? [...bytes.subarray(0, length[0])] : undefined
         told[key] = { types, raw, text: n.ncclParamGetParameter(key, text, length) === 0 && readCString(text[0]) }
       }
       const unknown = n.ncclParamBind(handle, 'NO_SUCH_PARAMETER')
       console.log(JSON.stringify({ status, told, unknown, none: n.ncclParamGetI64(null, new BigInt64Array(1)) }))
       n.ncclParamDumpAll()`,
      { NCCL_DEBUG: 'WARN' },
    )
    const { told, ...statuses } = JSON.parse(lines[0] as string)
    expect(statuses).toEqual({ status: 0, unknown: 4, none: 4 })
    expect(Object.keys(told).every((key) => /^NCCL_\w+$/.test(key))).toBe(true)
    expect(told).toMatchObject({
      NCCL_DEBUG: { types: [], raw: [2, 0, 0, 0], text: 'WARN' },
      NCCL_DEBUG_SUBSYS: { types: ['U64'], text: 'INIT,ENV,BOOTSTRAP' },
      NCCL_DEBUG_TIMESTAMP_LEVELS: { types: ['U32'], raw: [4, 0, 0, 0], text: 'WARN' },
      NCCL_DEBUG_TIMESTAMP_FORMAT: { types: ['Str'], text: '[%F %T] ' },
      NCCL_SET_THREAD_NAME: { types: [], raw: [0], text: 'FALSE' },
    })
    expect(lines.filter((line) => /^NCCL_\w+ \(/.test(line))).toHaveLength(Object.keys(told).length)
  })

  test('accepts a config for its version, and refuses other bytes', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [taken, refused, says] = runModule(
      `import { readCString } from '@shoal/ffi'
       import * as n from '@shoal/nccl-sys'
       const comm = new BigUint64Array(1), id = n.ncclUniqueId.allocate()
       const init = (config) => { n.ncclGetUniqueId(id); return n.ncclCommInitRankConfig(comm, 1, id, 0, config) }
       const config = n.initialNcclConfig({ blocking: 1 })
       console.log(init(config))
       const bad = n.initialNcclConfig()
       bad.u32[2] = 1
       console.log(init(bad))
       console.log(readCString(n.ncclGetLastError(null)))`,
    ) as [string, string, string]
    const { ncclSuccess, ncclUnhandledCudaError, ncclInvalidArgument } = nccl.ncclResult_t
    // Without a GPU, NCCL fails before it reads the config.
    if (Number(taken) === ncclUnhandledCudaError) return skip(`no GPU: ${says}`)
    expect([Number(taken), Number(refused)]).toEqual([ncclSuccess, ncclInvalidArgument])
    expect(says).toContain('NCCL_CONFIG_INITIALIZER')
  })
})
