import {
  CUlibrary,
  CUmodule,
  nvshmemx_culibrary_finalize,
  nvshmemx_culibrary_init,
  nvshmemx_cumodule_finalize,
  nvshmemx_cumodule_init,
} from '@shoal/nvshmem-sys'
import { inspectKey, inspectLine, PublicObject, requireMade } from '@shoal/types'
import { checkNvshmem } from '../errors.js'
import type { LiveSession } from '../queue/liveSession.js'
import { handleOf } from './handles.js'
import {
  blocksPerMultiprocessor,
  type CollectiveLaunchOptions,
  type KernelLike,
  type LaunchParameter,
  launchCollectively,
} from './launch.js'

/** A loaded module: an object with a `CUmodule`, such as a `Module` of `@shoal/driver`, or the handle. */
export type ModuleLike = { readonly handle: bigint } | bigint

/** A loaded library: an object with a `CUlibrary`, or the handle. */
export type LibraryLike = { readonly handle: bigint } | bigint

/**
 * Support for kernels that call NVSHMEM themselves.
 *
 * Compile them with nvcc and link them against `libnvshmem_device.a` (or compile against its bitcode). Load them like
 * any other code, and initialize them for this session before their first launch.
 *
 * @example
 * ```ts
 * const module = await Module.loadFile(device, 'ring.cubin')
 * await session.deviceCode.initializeModule(module)
 * const kernel = module.kernel('put_to_next', ['ptr', 'i32'])
 * session.deviceCode.launchCollectively(kernel, { grid: 4, block: 256, stream }, target, { dtype: 'i32', value: 1 })
 * ```
 */
export class DeviceCode extends PublicObject {
  readonly #live: LiveSession

  /** @internal */
  constructor(live: LiveSession) {
    requireMade(live?.queue, 'DeviceCode', 'Session.deviceCode', 'object')
    super()
    this.#live = live
  }

  /**
   * Initializes the NVSHMEM code in a module for this session (`nvshmemx_cumodule_init`).
   *
   * Call it before the first launch of a kernel that uses NVSHMEM.
   *
   * @throws StatusError if the module contains no NVSHMEM code, or code of another version.
   */
  initializeModule(module: ModuleLike): Promise<void> {
    return this.#call('initializeModule', 'nvshmemx_cumodule_init', () => {
      const handle = CUmodule(handleOf(module, 'DeviceCode.initializeModule', 'module', 'CUmodule'))
      return () => nvshmemx_cumodule_init(handle)
    })
  }

  /**
   * Reverses {@link initializeModule} (`nvshmemx_cumodule_finalize`).
   *
   * Call it before the module is unloaded, and before the session ends. @throws StatusError
   */
  finalizeModule(module: ModuleLike): Promise<void> {
    return this.#call('finalizeModule', 'nvshmemx_cumodule_finalize', () => {
      const handle = CUmodule(handleOf(module, 'DeviceCode.finalizeModule', 'module', 'CUmodule'))
      return () => nvshmemx_cumodule_finalize(handle)
    })
  }

  /** Like {@link initializeModule}, for code loaded as a library (`nvshmemx_culibrary_init`). */
  initializeLibrary(library: LibraryLike): Promise<void> {
    return this.#call('initializeLibrary', 'nvshmemx_culibrary_init', () => {
      const handle = CUlibrary(handleOf(library, 'DeviceCode.initializeLibrary', 'library', 'CUlibrary'))
      return () => nvshmemx_culibrary_init(handle)
    })
  }

  /** Like {@link finalizeModule}, for code loaded as a library (`nvshmemx_culibrary_finalize`). */
  finalizeLibrary(library: LibraryLike): Promise<void> {
    return this.#call('finalizeLibrary', 'nvshmemx_culibrary_finalize', () => {
      const handle = CUlibrary(handleOf(library, 'DeviceCode.finalizeLibrary', 'library', 'CUlibrary'))
      return () => nvshmemx_culibrary_finalize(handle)
    })
  }

  /**
   * Launches a kernel whose blocks all run at the same time (`cuLaunchCooperativeKernel`).
   *
   * Launch kernels that wait for other PEs with this method: a barrier in a kernel with unstarted blocks would never
   * complete. Every PE launches the kernel. This is not a call of NVSHMEM, so it does not wait for its turn.
   *
   * @throws StatusError (CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) if the blocks do not fit on the device at the same
   * time.
   */
  launchCollectively(kernel: KernelLike, options: CollectiveLaunchOptions, ...parameters: LaunchParameter[]): void {
    this.#live.requireOpen('DeviceCode.launchCollectively')
    launchCollectively(this.#live, kernel, options, parameters)
  }

  /**
   * Returns how many blocks of a kernel fit on each multiprocessor at the same time.
   *
   * Multiply by the device's multiprocessors for the largest grid of {@link launchCollectively}
   * (`cuOccupancyMaxActiveBlocksPerMultiprocessor`).
   */
  blocksPerMultiprocessor(kernel: KernelLike, threads: number, sharedMemory = 0): number {
    this.#live.requireOpen('DeviceCode.blocksPerMultiprocessor')
    return blocksPerMultiprocessor(this.#live, kernel, threads, sharedMemory)
  }

  get [Symbol.toStringTag](): string {
    return 'DeviceCode'
  }

  /** @internal */
  override [inspectKey](): string {
    const { pe, deviceOrdinal } = this.#live
    return inspectLine('DeviceCode', { pe, deviceOrdinal })
  }

  async #call(method: string, function_: string, check: () => () => number): Promise<void> {
    const api = `DeviceCode.${method}`
    this.#live.requireOpen(api)
    const [status] = await this.#live.queue.run(api, check())
    checkNvshmem(status, function_)
  }
}
