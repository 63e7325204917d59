import { readCString } from '@shoal/ffi'
import { nvrtc, nvrtcGetErrorString, nvrtcResult } from '@shoal/nvrtc-sys'
import { StatusError } from '@shoal/types'
import { CompileError } from '../log/compileError.js'

const names = new Map<number, string>(Object.entries(nvrtcResult).map(([name, value]) => [value, name]))

function factsOf(status: number, api: string) {
  return {
    library: nvrtc.title,
    api,
    status,
    code: names.get(status) ?? `nvrtcResult(${status})`,
    description: readCString(nvrtcGetErrorString(status as nvrtcResult) as bigint) ?? '',
    libraryVersion: nvrtc.versionText,
  }
}

/** @throws StatusError for every status but success */
export function checkNvrtc(status: number | undefined, api: string): void {
  if (status !== nvrtcResult.NVRTC_SUCCESS) throw new StatusError(factsOf(status ?? -1, api))
}

/** The error of a compilation that ended with a status. */
export function compileError(status: number, log: string): CompileError {
  const facts = factsOf(status, 'nvrtcCompileProgram')
  return new CompileError({ ...facts, log })
}
