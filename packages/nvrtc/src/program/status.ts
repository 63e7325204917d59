import { readCString } from '@shoal/ffi'
import { nvrtc, nvrtcGetErrorString, nvrtcResult } from '@shoal/nvrtc-sys'
import { StatusError } from '@shoal/types'
import { libraryPath } from '../cache/library.js'
import { CompileError } from '../log/compileError.js'
import type { Diagnostic } from '../log/diagnostic.js'
import { cudaHeaderFolders } from '../options/cudaHeaders.js'

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

/** Checks a status. @throws StatusError unless it is success */
export function checkNvrtc(status: number | undefined, api: string): void {
  if (status !== nvrtcResult.NVRTC_SUCCESS) throw new StatusError(factsOf(status ?? -1, api))
}

/** Returns the error of a failed compilation. `reason` adds what NVRTC does not report. */
export function compileError(status: number, log: string, options: readonly string[], reason?: string): CompileError {
  const facts = factsOf(status, 'nvrtcCompileProgram')
  return new CompileError({ ...facts, log, hint: (diagnostics) => reason ?? headerHint(diagnostics, options) })
}

/** NVRTC's message for a missing header, in all versions. */
const missing = 'open source file "'
const includePath = '--include-path='

function headerHint(diagnostics: readonly Diagnostic[], options: readonly string[]): string | undefined {
  if (!diagnostics.some(({ severity, message }) => severity === 'error' && message.includes(missing))) return undefined
  const folders = options.filter((each) => each.startsWith(includePath)).map((each) => each.slice(includePath.length))
  const shown = folders.length > 4 ? [...folders.slice(0, 4), `and ${folders.length - 4} more`] : folders
  const searched = shown.length === 0 ? '' : ` Searched: ${shown.join(', ')}.`
  const hint = `Name the header's folder in the option includeFolders.${searched}`
  if (cudaHeaderFolders().length > 0) return hint
  const wheels = 'pip install nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl'
  return `${hint} CUDA's own headers are not installed beside ${libraryPath()}: they come with the toolkit, or ${wheels}.`
}
