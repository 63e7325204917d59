import { NativeMemory, readCString, textIn } from '@shoal/ffi'
import {
  nvrtc,
  nvrtcAddNameExpression,
  nvrtcCompileProgram,
  nvrtcCreateProgram,
  nvrtcDestroyProgram,
  nvrtcGetCUBIN,
  nvrtcGetCUBINSize,
  nvrtcGetLoweredName,
  nvrtcGetLTOIR,
  nvrtcGetLTOIRSize,
  nvrtcGetOptiXIR,
  nvrtcGetOptiXIRSize,
  nvrtcGetPCHCreateStatus,
  nvrtcGetPCHHeapSizeRequired,
  nvrtcGetProgramLog,
  nvrtcGetProgramLogSize,
  nvrtcGetPTX,
  nvrtcGetPTXSize,
  nvrtcProgram,
  nvrtcResult,
} from '@shoal/nvrtc-sys'
import type { CompiledData, Request } from '../compilation/data.js'
import type { CallStep, Calls } from '../native/calls.js'
import { CStrings } from '../native/cStrings.js'
import { supportedArchitectures } from './architectures.js'
import { checkNvrtc, compileError } from './status.js'

type SizeOf = (program: nvrtcProgram, size: bigint) => number
type Get = (program: nvrtcProgram, bytes: NativeMemory) => number

/** Outputs of a program: the functions for size and bytes, and the first version with them. */
const outputs: readonly (readonly [
  kind: 'log' | 'ptx' | 'cubin' | 'ltoIr' | 'optixIr',
  symbol: string,
  since: number,
  SizeOf,
  Get,
])[] = [
  ['log', 'nvrtcGetProgramLog', 0, nvrtcGetProgramLogSize, nvrtcGetProgramLog],
  ['ptx', 'nvrtcGetPTX', 0, nvrtcGetPTXSize, nvrtcGetPTX],
  ['cubin', 'nvrtcGetCUBIN', 11_010, nvrtcGetCUBINSize, nvrtcGetCUBIN],
  ['ltoIr', 'nvrtcGetLTOIR', 12_000, nvrtcGetLTOIRSize, nvrtcGetLTOIR],
  ['optixIr', 'nvrtcGetOptiXIR', 12_000, nvrtcGetOptiXIRSize, nvrtcGetOptiXIR],
]

/**
 * Yields the calls of one compilation; each step needs the results of the step before.
 *
 * @throws CompileError, StatusError
 */
export function* compilation(request: Request): Calls<CompiledData> {
  const headers = Object.entries(request.headers)
  const { nameExpressions, options } = request
  const texts = new CStrings([
    request.source,
    request.name,
    ...headers.map(([, text]) => text),
    ...headers.map(([name]) => name),
    ...options,
    ...nameExpressions,
  ])
  const firstOption = 2 + 2 * headers.length
  const firstExpression = firstOption + options.length
  const handle = NativeMemory.allocate(8)
  const cells = NativeMemory.allocate(8 * (outputs.length + nameExpressions.length + 1))
  const cell = (index: number): bigint => cells.address + BigInt(8 * index)
  const memory: NativeMemory[] = [texts.memory, handle, cells]
  const step = (...calls: (() => number)[]): CallStep => ({ calls, keep: memory })
  try {
    const [created] = yield step(() =>
      nvrtcCreateProgram(
        handle,
        texts.text(0),
        texts.text(1),
        headers.length,
        texts.table(2),
        texts.table(2 + headers.length),
      ),
    )
    checkNvrtc(created, 'nvrtcCreateProgram')
    const program = nvrtcProgram(handle.u64[0] as bigint)
    const asked = outputs.filter(([, symbol, since]) => since === 0 || nvrtc.has(symbol, since))
    const statuses = yield step(
      ...nameExpressions.map((_, index) => () => nvrtcAddNameExpression(program, texts.text(firstExpression + index))),
      () => nvrtcCompileProgram(program, options.length, texts.table(firstOption)),
      ...asked.map(
        ([, , , sizeOf], index) =>
          () =>
            sizeOf(program, cell(index)),
      ),
    )
    for (const status of statuses.slice(0, nameExpressions.length)) checkNvrtc(status, 'nvrtcAddNameExpression')
    const status = statuses[nameExpressions.length] as number
    const isCompiled = status === nvrtcResult.NVRTC_SUCCESS
    const sizes = asked.map((_, index) =>
      statuses[nameExpressions.length + 1 + index] === 0 ? Number(cells.u64[index]) : 0,
    )
    const wanted = asked.filter(([kind], index) => (isCompiled || kind === 'log') && (sizes[index] as number) > 1)
    const bytes = wanted.map((output) => NativeMemory.allocate(sizes[asked.indexOf(output)] as number))
    memory.push(...bytes)
    const expressions = isCompiled ? nameExpressions : []
    const asksForPch =
      isCompiled &&
      options.some((option) => /^--?(pch|create[-_]pch)\b/.test(option)) &&
      nvrtc.has('nvrtcGetPCHCreateStatus', 12_080)
    const got = yield step(
      ...wanted.map(
        ([, , , , get], index) =>
          () =>
            get(program, bytes[index] as NativeMemory),
      ),
      ...expressions.map(
        (_, index) => () =>
          nvrtcGetLoweredName(program, texts.text(firstExpression + index), cell(outputs.length + index)),
      ),
      ...(asksForPch
        ? [
            () => nvrtcGetPCHCreateStatus(program),
            () => nvrtcGetPCHHeapSizeRequired(program, cell(outputs.length + nameExpressions.length)),
          ]
        : []),
    )
    const found: Partial<Record<'log' | 'ptx' | 'cubin' | 'ltoIr' | 'optixIr', Uint8Array>> = {}
    for (const [index, [kind, symbol]] of wanted.entries()) {
      checkNvrtc(got[index], symbol)
      found[kind] = (bytes[index] as NativeMemory).bytes.slice()
    }
    // NVRTC's log ends with empty lines.
    const log = textOf(found.log)?.trimEnd() ?? ''
    if (!isCompiled) throw compileError(status, log, options, wrongArchitecture(status, options))
    const lowered: Record<string, string> = {}
    for (const [index, expression] of expressions.entries()) {
      checkNvrtc(got[wanted.length + index], 'nvrtcGetLoweredName')
      lowered[expression] = readCString(cells.u64[outputs.length + index] as bigint) ?? ''
    }
    const pchStatus = asksForPch ? got[wanted.length + expressions.length] : undefined
    return {
      ptx: textOf(found.ptx),
      cubin: found.cubin,
      ltoIr: found.ltoIr,
      optixIr: found.optixIr,
      log,
      lowered,
      pchHeapRequired:
        pchStatus === nvrtcResult.NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED
          ? Number(cells.u64[outputs.length + nameExpressions.length])
          : undefined,
    }
  } finally {
    if (handle.u64[0] !== 0n) yield step(() => nvrtcDestroyProgram(handle))
    for (const each of memory) each.dispose()
  }
}

function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : textIn(bytes)
}

const architectureFlag = '--gpu-architecture='

/** Describes an unsupported architecture: NVRTC reports neither the invalid value nor the valid ones. */
function wrongArchitecture(status: number, options: readonly string[]): string | undefined {
  const option = options.find((each) => each.startsWith(architectureFlag))
  if (status !== nvrtcResult.NVRTC_ERROR_INVALID_OPTION || option === undefined) return undefined
  if (!nvrtc.has('nvrtcGetSupportedArchs', 11_020)) return undefined
  const given = option.slice(architectureFlag.length)
  const known = supportedArchitectures({ cache: false })
  if (known.includes(Number(/^(?:sm|compute|lto)_(\d+)[af]?$/.exec(given)?.[1]))) return undefined
  const list = known.map((each) => `sm_${each}`).join(', ')
  return `architecture must be one of ${list}, or compute_ with one of these numbers, not '${given}'`
}
