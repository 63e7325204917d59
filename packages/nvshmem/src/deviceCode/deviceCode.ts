import {
  CUlibrary,
  CUmodule,
  nvshmemx_culibrary_finalize,
  nvshmemx_culibrary_init,
  nvshmemx_cumodule_finalize,
  nvshmemx_cumodule_init,
} from '@shoal/nvshmem-sys'
import { describeValue } from '@shoal/types'
import { checkNvshmem } from '../errors.js'
import type { LiveSession } from '../queue/liveSession.js'
import {
  blocksPerMultiprocessor,
  type CollectiveLaunchOptions,
  type KernelLike,
  type LaunchParameter,
  launchCollectively,
} from './launch.js'

/** Loaded code: an object with a `CUmodule`, such as a `Module` of `@shoal/driver`, or the bare handle. */
export type ModuleLike = { readonly handle: bigint } | bigint

/** Loaded code: an object with a `CUlibrary`, or the bare handle. */
export type LibraryLike = { readonly handle: bigint } | bigint

/**
 * Kernels that call NVSHMEM themselves. They are compiled by nvcc and linked against `libnvshmem_device.a` (or compiled
 * against its bitcode), loaded like any other code, and told of this session before their first launch.
 */
export class DeviceCode {
  readonly #live: LiveSession

  /** @internal */
  constructor(live: LiveSession) {
    this.#live = live
  }

  /**
   * Tells the NVSHMEM code inside a module of this session (`nvshmemx_cumodule_init`): before the first launch of a kernel
   * that uses it.
   *
   * @throws StatusError when there is no NVSHMEM code in the module, or of another version.
   */
  initializeModule(module: ModuleLike): Promise<void> {
    return this.#call('initializeModule', 'nvshmemx_cumodule_init', () => {
      const handle = CUmodule(handleOf(module, 'DeviceCode.initializeModule', 'module', 'CUmodule'))
      return () => nvshmemx_cumodule_init(handle)
    })
  }

  /** Takes that back (`nvshmemx_cumodule_finalize`): before the module is unloaded, and before the session ends. */
  finalizeModule(module: ModuleLike): Promise<void> {
    return this.#call('finalizeModule', 'nvshmemx_cumodule_finalize', () => {
      const handle = CUmodule(handleOf(module, 'DeviceCode.finalizeModule', 'module', 'CUmodule'))
      return () => nvshmemx_cumodule_finalize(handle)
    })
  }

  /** The same as {@link initializeModule} for code loaded as a library (`nvshmemx_culibrary_init`). */
  initializeLibrary(library: LibraryLike): Promise<void> {
    return this.#call('initializeLibrary', 'nvshmemx_culibrary_init', () => {
      const handle = CUlibrary(handleOf(library, 'DeviceCode.initializeLibrary', 'library', 'CUlibrary'))
      return () => nvshmemx_culibrary_init(handle)
    })
  }

  /** The same as {@link finalizeModule} for code loaded as a library (`nvshmemx_culibrary_finalize`). */
  finalizeLibrary(library: LibraryLike): Promise<void> {
    return this.#call('finalizeLibrary', 'nvshmemx_culibrary_finalize', () => {
      const handle = CUlibrary(handleOf(library, 'DeviceCode.finalizeLibrary', 'library', 'CUlibrary'))
      return () => nvshmemx_culibrary_finalize(handle)
    })
  }

  /**
   * Queues a kernel all of whose blocks run at once (`cuLaunchCooperativeKernel`), as kernels need that wait for other PEs
   * inside: a barrier in a kernel that has not all started would never end. Every PE launches it. Not a call of NVSHMEM,
   * so it does not wait for its turn.
   *
   * @throws StatusError (CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) when the blocks do not fit onto the device at once.
   */
  launchCollectively(kernel: KernelLike, options: CollectiveLaunchOptions, ...parameters: LaunchParameter[]): void {
    this.#live.requireOpen('DeviceCode.launchCollectively')
    launchCollectively(this.#live, kernel, options, parameters)
  }

  /**
   * The most blocks of a kernel that each multiprocessor can hold at once; times the device's multiprocessors, the
   * largest grid for {@link launchCollectively} (`cuOccupancyMaxActiveBlocksPerMultiprocessor`).
   */
  blocksPerMultiprocessor(kernel: KernelLike, threads: number, sharedMemory = 0): number {
    this.#live.requireOpen('DeviceCode.blocksPerMultiprocessor')
    return blocksPerMultiprocessor(this.#live, kernel, threads, sharedMemory)
  }

  async #call(method: string, function_: string, check: () => () => number): Promise<void> {
    const api = `DeviceCode.${method}`
    this.#live.requireOpen(api)
    checkNvshmem(await this.#live.queue.runOne(api, check()), function_)
  }
}

function handleOf(object: unknown, api: string, parameter: string, type: string): bigint {
  const handle = typeof object === 'object' && object !== null ? (object as { handle?: unknown }).handle : object
  if (typeof handle === 'bigint' && handle > 0n && BigInt.asUintN(64, handle) === handle) return handle
  throw new TypeError(`${api}: ${parameter} must have a handle (a ${type}), got ${describeValue(object)}`)
}
