import { NativeMemory, textIn } from '@shoal/ffi'
import {
  nvJitLinkAddData,
  nvJitLinkAddFile,
  nvJitLinkComplete,
  nvJitLinkCreate,
  nvJitLinkDestroy,
  nvJitLinkGetErrorLog,
  nvJitLinkGetErrorLogSize,
  nvJitLinkGetInfoLog,
  nvJitLinkGetInfoLogSize,
  nvJitLinkGetLinkedCubin,
  nvJitLinkGetLinkedCubinSize,
  nvJitLinkGetLinkedLTOIR,
  nvJitLinkGetLinkedLTOIRSize,
  nvJitLinkGetLinkedPtx,
  nvJitLinkGetLinkedPtxSize,
  nvJitLinkHandle,
  type nvJitLinkInputType,
  nvJitLinkResult,
  nvjitlink,
} from '@shoal/nvjitlink-sys'
import { type CallStep, type Calls, CompileError, CStrings } from '@shoal/nvrtc/basics'
import type { LinkedData } from './linked.js'

/** An input: bytes, or else a file. */
export interface Input {
  readonly type: nvJitLinkInputType
  /** Name in messages; for a file its path. */
  readonly name: string
  readonly data?: Uint8Array
}

type SizeOf = (link: nvJitLinkHandle, size: bigint) => number
type Get = (link: nvJitLinkHandle, bytes: NativeMemory) => number
type Kind = 'errorLog' | 'infoLog' | 'cubin' | 'ptx' | 'ltoIr'

const logs: readonly (readonly [Kind, SizeOf, Get])[] = [
  ['errorLog', nvJitLinkGetErrorLogSize, nvJitLinkGetErrorLog],
  ['infoLog', nvJitLinkGetInfoLogSize, nvJitLinkGetInfoLog],
]
const code: readonly (readonly [Kind, SizeOf, Get])[] = [
  ['cubin', nvJitLinkGetLinkedCubinSize, nvJitLinkGetLinkedCubin],
  ['ptx', nvJitLinkGetLinkedPtxSize, nvJitLinkGetLinkedPtx],
]
const ltoIr = ['ltoIr', nvJitLinkGetLinkedLTOIRSize, nvJitLinkGetLinkedLTOIR] as const

const names = new Map<number, string>(Object.entries(nvJitLinkResult).map(([name, value]) => [value, name]))

/** Yields the calls of one link; each step needs the results of the step before. @throws CompileError */
export function* linking(options: readonly string[], inputs: readonly Input[]): Calls<LinkedData> {
  const texts = new CStrings([...options, ...inputs.map(({ name }) => name)])
  const handle = NativeMemory.allocate(8)
  const cells = NativeMemory.allocate(8 * 4)
  const memory: NativeMemory[] = [texts.memory, handle, cells]
  const step = (...calls: (() => number)[]): CallStep => ({ calls, keep: memory })
  const wants = (flag: string): boolean => options.includes(flag)
  try {
    const bytes = inputs.map(({ data }) => {
      if (data === undefined) return undefined
      const copy = NativeMemory.allocate(data.length)
      memory.push(copy)
      copy.bytes.set(data)
      return copy
    })
    const [created = -1] = yield step(() => nvJitLinkCreate(handle, options.length, texts.table()))
    const link = nvJitLinkHandle(handle.u64[0] as bigint)
    let failed: [status: number, api: string] | undefined = created === 0 ? undefined : [created, 'nvJitLinkCreate']
    for (const [index, { type, data }] of failed === undefined ? inputs.entries() : []) {
      const name = texts.text(options.length + index)
      const copy = bytes[index] as NativeMemory
      // One by one, because a link without a failed input would still succeed.
      const [status = -1] = yield step(
        data === undefined
          ? () => nvJitLinkAddFile(link, type, name)
          : () => nvJitLinkAddData(link, type, copy, data.length, name),
      )
      if (status !== 0) failed = [status, data === undefined ? 'nvJitLinkAddFile' : 'nvJitLinkAddData']
      if (failed !== undefined) break
    }
    if (failed === undefined) {
      const [status = -1] = yield step(() => nvJitLinkComplete(link))
      if (status !== 0) failed = [status, 'nvJitLinkComplete']
    }
    if (link === 0n) throw errorOf(failed as [number, string], '')
    const hasLtoIr = wants('-lto') && nvjitlink.has('nvJitLinkGetLinkedLTOIR', 13_040)
    const wantsPtx = wants('-ptx')
    const outputs = code.filter(([kind]) => (kind === 'ptx') === wantsPtx)
    const asked = failed === undefined ? [...logs, ...outputs, ...(hasLtoIr ? [ltoIr] : [])] : logs
    const sized = yield step(
      ...asked.map(
        ([, sizeOf], index) =>
          () =>
            sizeOf(link, cells.address + BigInt(8 * index)),
      ),
    )
    const wanted = asked.flatMap(([kind, , get], index) => {
      const size = sized[index] === 0 ? Number(cells.u64[index]) : 0
      return size === 0 ? [] : [{ kind, get, target: NativeMemory.allocate(size) }]
    })
    memory.push(...wanted.map(({ target }) => target))
    const got = yield step(
      ...wanted.map(
        ({ get, target }) =>
          () =>
            get(link, target),
      ),
    )
    const found: Partial<Record<Kind, Uint8Array>> = {}
    for (const [index, { kind, target }] of wanted.entries()) if (got[index] === 0) found[kind] = target.bytes.slice()
    if (failed !== undefined) throw errorOf(failed, textOf(found.errorLog))
    const log = [textOf(found.infoLog), textOf(found.errorLog)].filter((text) => text !== '').join('\n')
    return {
      cubin: found.cubin,
      ptx: found.ptx === undefined ? undefined : textOf(found.ptx),
      ltoIr: found.ltoIr,
      log,
    }
  } finally {
    if (handle.u64[0] !== 0n) yield step(() => nvJitLinkDestroy(handle))
    for (const each of memory) each.dispose()
  }
}

function errorOf([status, api]: readonly [number, string], log: string): CompileError {
  return new CompileError({
    library: nvjitlink.title,
    api,
    status,
    code: names.get(status) ?? `nvJitLinkResult(${status})`,
    log,
    description: '',
    libraryVersion: nvjitlink.versionText,
  })
}

/** Decodes a C string without its NUL and trailing empty lines. */
function textOf(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '' : textIn(bytes).trimEnd()
}
