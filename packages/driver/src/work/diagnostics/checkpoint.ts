import {
  CUcheckpointGpuPair,
  CUcheckpointRestoreArgs,
  cuCheckpointProcessCheckpoint,
  cuCheckpointProcessGetRestoreThreadId,
  cuCheckpointProcessGetState,
  cuCheckpointProcessLock,
  cuCheckpointProcessRestore,
  cuCheckpointProcessUnlock,
} from '@shoal/cuda-sys/driver'
import { NativeMemory, offThread } from '@shoal/ffi'
import {
  inspectKey,
  inspectLine,
  isInstance,
  optionalTimeout,
  PublicObject,
  requireInteger,
  requireList,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { driverLibrary } from '../../core/calls/driverLibrary.js'
import { check, driverError, Status } from '../../core/errors.js'
import { scratch } from '../../core/native.js'

/** State of a process (`CUprocessState`). */
export type ProcessState = 'running' | 'locked' | 'checkpointed' | 'failed'

const states: readonly ProcessState[] = ['running', 'locked', 'checkpointed', 'failed']

/** The replacement of a device by another, by their UUIDs of 16 bytes. */
export interface DeviceReplacement {
  /** The device at the time of the checkpoint. */
  readonly from: Uint8Array
  /** The device after the restore. */
  readonly to: Uint8Array
}

const argumentBytes = 64

/**
 * Stops the CUDA part of this or another process, moves it off the GPUs and restores it (`cuCheckpointProcess…`). With
 * a tool such as CRIU for the rest, a process can move to another machine. Requires the right to trace the process.
 *
 * @example
 * const checkpoint = new ProcessCheckpoint(pid)
 * await checkpoint.lock({ timeout: 10_000 })
 * await checkpoint.save()
 * // its GPUs are free now
 * await checkpoint.restore()
 * await checkpoint.unlock()
 */
export class ProcessCheckpoint extends PublicObject {
  /** Id of the process. */
  readonly pid: number

  /** @throws TypeError, RangeError */
  constructor(pid: number) {
    super()
    this.pid = requireInteger(pid, 'new ProcessCheckpoint', 'pid', 1, 2 ** 31 - 1)
  }

  /**
   * State of the process (`cuCheckpointProcessGetState`).
   * @throws VersionTooOldError on drivers before 12.8; StatusError, such as for a process without CUDA
   */
  get state(): ProcessState {
    driverLibrary.start()
    const out = scratch()
    check(cuCheckpointProcessGetState(this.pid, out), 'cuCheckpointProcessGetState')
    return states[out.i32[0] as number] ?? 'failed'
  }

  /**
   * Id of the thread in that process on which {@link restore} must be called (`cuCheckpointProcessGetRestoreThreadId`).
   */
  get restoreThreadId(): number {
    driverLibrary.start()
    const out = scratch()
    check(cuCheckpointProcessGetRestoreThreadId(this.pid, out), 'cuCheckpointProcessGetRestoreThreadId')
    return out.i32[0] as number
  }

  /**
   * Blocks the process's CUDA calls from now on. Resolves when calls in progress end (`cuCheckpointProcessLock`).
   * @param options timeout: limit for these calls in milliseconds. Default: none.
   */
  async lock(options: { readonly timeout?: number | undefined } = {}): Promise<void> {
    const api = 'ProcessCheckpoint.lock'
    const given = requireOptions<{ readonly timeout?: number | undefined }>(options, api, { timeout: true })
    const memory = NativeMemory.allocate(argumentBytes)
    memory.u32[0] = optionalTimeout(given.timeout, api) ?? 0
    await this.#call('cuCheckpointProcessLock', memory, cuCheckpointProcessLock)
  }

  /** Moves the process's device memory to the host and releases the GPUs (`cuCheckpointProcessCheckpoint`). */
  async save(): Promise<void> {
    const memory = NativeMemory.allocate(argumentBytes)
    await this.#call('cuCheckpointProcessCheckpoint', memory, cuCheckpointProcessCheckpoint)
  }

  /**
   * Restores the state that {@link save} stored (`cuCheckpointProcessRestore`).
   * @param options devices: a replacement for each previous GPU. Default: the same GPUs.
   */
  async restore(options: { readonly devices?: readonly DeviceReplacement[] | undefined } = {}): Promise<void> {
    const api = 'ProcessCheckpoint.restore'
    const given = requireOptions<typeof options>(options, api, { devices: true })
    const list =
      given.devices === undefined ? [] : requireList(given.devices, api, 'devices', 'an array of { from, to }')
    const pairs = NativeMemory.allocate(Math.max(list.length, 1) * CUcheckpointGpuPair.size)
    for (const [index, one] of list.entries()) {
      const name = `devices[${index}]`
      const { from, to } = requireOptions<DeviceReplacement>(one, api, { from: true, to: true }, name)
      const at = index * CUcheckpointGpuPair.size
      pairs.bytes.set(requireUuid(from, api, `${name}.from`), at)
      pairs.bytes.set(requireUuid(to, api, `${name}.to`), at + 16)
    }
    const memory = NativeMemory.allocate(CUcheckpointRestoreArgs.size)
    if (list.length > 0) CUcheckpointRestoreArgs.write(memory, { gpuPairs: pairs.address, gpuPairsCount: list.length })
    await this.#call('cuCheckpointProcessRestore', memory, cuCheckpointProcessRestore)
    pairs.dispose()
  }

  /** Continues the process's CUDA calls (`cuCheckpointProcessUnlock`). */
  async unlock(): Promise<void> {
    const memory = NativeMemory.allocate(argumentBytes)
    await this.#call('cuCheckpointProcessUnlock', memory, cuCheckpointProcessUnlock)
  }

  async #call(api: string, memory: NativeMemory, call: (pid: number, memory: NativeMemory) => number): Promise<void> {
    driverLibrary.start()
    const { pid } = this
    const [status = Status.success] = await offThread({}, () => call(pid, memory))
    if (status !== Status.success) throw driverError(status, api, `process: ${pid}`)
  }

  get [Symbol.toStringTag](): string {
    return 'ProcessCheckpoint'
  }

  override [inspectKey](): string {
    return inspectLine('ProcessCheckpoint', { pid: this.pid })
  }
}

function requireUuid(value: unknown, api: string, name: string): Uint8Array {
  if (isInstance(value, Uint8Array) && value.length === 16) return value
  throw wrongType(api, name, 'a Uint8Array of 16 bytes', value)
}
