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

/** Where reading begins. */
export interface LogOptions {
  /** A place that {@link logPosition} or an earlier reading gave. Default: all that the driver still has. */
  readonly since?: number | undefined
}

const logKeys: OptionKeys<LogOptions> = { since: true }

/** The most that the driver gives at once. */
const mostBytes = 25_600
const lastPosition = 2 ** 32 - 1

/** What was read, and where the next reading goes on. */
export interface LogReading {
  /** Lines, each ending with a line break; the newest ones where not all have room in 25,600 bytes. */
  readonly text: string
  /** Where the next reading goes on. */
  readonly position: number
}

/** Where the driver's log ends now (`cuLogsCurrent`). @throws VersionTooOldError on drivers before 12.9 */
export function logPosition(): number {
  driverLibrary.start()
  const out = scratch()
  check(cuLogsCurrent(out, 0), 'cuLogsCurrent')
  return out.u32[0] as number
}

/**
 * What the driver has logged of errors (`cuLogsDumpToMemory`). @throws VersionTooOldError, TypeError, RangeError,
 * StatusError
 */
export function readLogs(options: LogOptions = {}): LogReading {
  const since = sinceOf(options, 'readLogs')
  const cells = NativeMemory.allocate(16 + mostBytes)
  if (since === undefined) {
    // Asked for before: what comes in between is read twice and not missed.
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
 * Adds what the driver has logged to a file (`cuLogsDumpToFile`). Gives where the next reading goes on.
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
 * Calls `fn` with what the driver logs from now on, soon after and on this thread, until the result is disposed of
 * (`cuLogsRegisterCallback`). Does not keep the process alive. @throws as {@link readLogs}
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
    // One reading has what several calls were about.
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
