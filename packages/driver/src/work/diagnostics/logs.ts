import {
  type CUlogsCallbackHandle,
  cuLogsCurrent,
  cuLogsDumpToFile,
  cuLogsDumpToMemory,
  cuLogsRegisterCallback,
  cuLogsUnregisterCallback,
} from '@shoal/cuda-sys/driver'
import { createHostCallback, NativeMemory, textIn } from '@shoal/ffi'
import { type OptionKeys, requireFunction, requireInteger, requireOptions, requireText } from '@shoal/types'
import { driverLibrary } from '../../core/calls/driverLibrary.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'

/** Options for reading the log. */
export interface LogOptions {
  /**
   * Start position: a result of {@link logPosition} or of an earlier reading. Default: everything that the driver still
   * has.
   */
  readonly since?: number | undefined
}

const logKeys: OptionKeys<LogOptions> = { since: true }

/** Maximum number of bytes per reading. */
const mostBytes = 25_600
const lastPosition = 2 ** 32 - 1

/** A part of the log, and the position of the next reading. */
export interface LogReading {
  /** Lines, each with a line break at the end. If the log exceeds 25,600 bytes, contains only the newest lines. */
  readonly text: string
  /** Position of the next reading. */
  readonly position: number
}

/** Returns the current end of the driver's log (`cuLogsCurrent`). @throws VersionTooOldError on drivers before 12.9 */
export function logPosition(): number {
  driverLibrary.start()
  const out = scratch()
  check(cuLogsCurrent(out, 0), 'cuLogsCurrent')
  return out.u32[0] as number
}

/**
 * Returns the driver's log of errors (`cuLogsDumpToMemory`). @throws VersionTooOldError, TypeError, RangeError,
 * StatusError
 */
export function readLogs(options: LogOptions = {}): LogReading {
  const since = sinceOf(options, 'readLogs')
  const cells = NativeMemory.allocate(16 + mostBytes)
  if (since === undefined) {
    // Read the position before the log: lines in between are read twice instead of missed.
    cells.u32[0] = logPosition()
    const position = cells.u32[0] as number
    return { text: dump(cells, null), position }
  }
  driverLibrary.start()
  cells.u32[0] = since
  const text = dump(cells, cells)
  return { text, position: cells.u32[0] as number }
}

function dump(cells: NativeMemory, iterator: NativeMemory | null): string {
  cells.u64[1] = BigInt(mostBytes)
  const buffer = cells.address + 16n
  check(cuLogsDumpToMemory(iterator, buffer, cells.address + 8n, 0), 'cuLogsDumpToMemory')
  return textIn(cells.bytes.subarray(16, 16 + Math.min(Number(cells.u64[1]), mostBytes)))
}

/**
 * Appends the driver's log to a file (`cuLogsDumpToFile`). Returns the position of the next reading.
 * @throws as {@link readLogs}
 */
export function writeLogs(path: string, options: LogOptions = {}): number {
  requireText(path, 'writeLogs', 'path')
  const since = sinceOf(options, 'writeLogs')
  const position = logPosition()
  if (since === undefined) {
    check(cuLogsDumpToFile(null, path, 0), 'cuLogsDumpToFile')
    return position
  }
  const cells = NativeMemory.allocate(8)
  cells.u32[0] = since
  check(cuLogsDumpToFile(cells, path, 0), 'cuLogsDumpToFile')
  return cells.u32[0] as number
}

/**
 * Calls `fn` on this thread with new lines of the driver's log, shortly after they are written, until the result is
 * disposed of (`cuLogsRegisterCallback`). Does not keep the process alive. @throws as {@link readLogs}
 *
 * @example
 * using listening = onLog((lines) => process.stderr.write(lines))
 */
export function onLog(fn: (lines: string) => void): Disposable {
  requireFunction(fn, 'onLog', 'fn')
  let position = logPosition()
  const callback = createHostCallback(() => {
    const reading = readLogs({ since: position })
    position = reading.position
    // One reading can contain the lines of several calls.
    if (reading.text !== '') fn(reading.text)
  })
  const out = scratch()
  try {
    check(cuLogsRegisterCallback(callback.functionAddress, callback.userData, out), 'cuLogsRegisterCallback')
  } catch (error) {
    callback.dispose()
    throw error
  }
  let handle = out.u64[0] as CUlogsCallbackHandle | undefined
  return {
    [Symbol.dispose]() {
      if (handle === undefined) return
      const registered = handle
      handle = undefined
      callback.dispose()
      check(cuLogsUnregisterCallback(registered), 'cuLogsUnregisterCallback')
    },
  }
}

function sinceOf(options: LogOptions, api: string): number | undefined {
  const { since } = requireOptions<LogOptions>(options, api, logKeys)
  return since === undefined ? undefined : requireInteger(since, api, 'since', 0, lastPosition)
}
