import {
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
  type CUexternalSemaphore,
  cuDestroyExternalSemaphore,
  cuImportExternalSemaphore,
  cuSignalExternalSemaphoresAsync,
  cuWaitExternalSemaphoresAsync,
} from '@shoal/cuda-sys/driver'
import { type OptionKeys, requireKeyOf, requireMade, requireOptions } from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { ContextObject, type Destroyer } from '../../core/context/contextObject.js'
import { keepCaptured } from '../../core/context/keptByCaptures.js'
import { scratch } from '../../core/native.js'
import { streamFor } from '../../core/stream/stream.js'
import type { QueueOptions } from '../../memory/buffers/deviceTransfers.js'
import { importHandle } from './importHandle.js'
import { encodeSemaphores, type SemaphoreOperation } from './semaphoreOperations.js'

/** Values of `CUexternalSemaphoreHandleType`. */
const semaphoreTypes = {
  'opaque-fd': 1,
  'opaque-win32': 2,
  'opaque-win32-kmt': 3,
  'd3d12-fence': 4,
  'd3d11-fence': 5,
  'd3d11-keyed-mutex': 7,
  'd3d11-keyed-mutex-kmt': 8,
  'timeline-fd': 9,
  'timeline-win32': 10,
} as const

/** An exported semaphore of another library, such as Vulkan. */
export interface ExternalSemaphoreDescription {
  /** Kind of the handle. */
  readonly type: keyof typeof semaphoreTypes
  /** A descriptor, or a Windows handle. The import takes ownership of a descriptor and closes it. */
  readonly handle: number | bigint
}

const descriptionKeys: OptionKeys<ExternalSemaphoreDescription> = { type: true, handle: true }
const queueKeys: OptionKeys<QueueOptions> = { stream: true }
const destroyer: Destroyer = {
  api: 'cuDestroyExternalSemaphore',
  call: (handle) => cuDestroyExternalSemaphore(handle as CUexternalSemaphore),
}

/**
 * A semaphore of another library, such as Vulkan, that streams signal and wait for (`cuImportExternalSemaphore`).
 *
 * A semaphore with an opaque handle is signaled or not, and a wait consumes the signal. A timeline semaphore has a
 * value that increases. `dispose()` waits for the context's work, as CUDA requires.
 *
 * @example
 * using ready = ExternalSemaphore.import(device, { type: 'timeline-fd', handle: descriptor })
 * waitSemaphores([{ semaphore: ready, value: frame }], { stream }) // the other library has drawn
 * kernel.launch({ grid, block, stream }, pixels)
 * signalSemaphores([{ semaphore: ready, value: frame + 1n }], { stream })
 */
export class ExternalSemaphore extends ContextObject {
  protected readonly kind = 'ExternalSemaphore'

  private constructor(context: Context, handle: CUexternalSemaphore) {
    requireMade(handle, 'ExternalSemaphore', 'ExternalSemaphore.import')
    super(context, handle, 'An ExternalSemaphore', destroyer)
  }

  /**
   * Imports an exported semaphore of another library.
   * @throws TypeError, RangeError; StatusError for a semaphore that the driver or the platform does not support;
   * SystemError for a descriptor that is not open
   */
  static import(owner: DeviceOrContext, description: ExternalSemaphoreDescription): ExternalSemaphore {
    const api = 'ExternalSemaphore.import'
    const context = contextOf(owner, api)
    requireOptions(description, api, descriptionKeys, 'description')
    const type = requireKeyOf(description.type, api, 'type', semaphoreTypes)
    return importHandle(description.type, description.handle, api, (handle) => {
      const described = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC.allocate({ type, handle })
      const out = scratch()
      context._callDriver('cuImportExternalSemaphore', () => cuImportExternalSemaphore(out, described))
      return new ExternalSemaphore(context, out.u64[0] as CUexternalSemaphore)
    })
  }

  /** The `CUexternalSemaphore`. @throws DisposedError */
  get handle(): CUexternalSemaphore {
    return this._use() as CUexternalSemaphore
  }
}

/**
 * Queues signals of semaphores, each with its value (`cuSignalExternalSemaphoresAsync`).
 * @throws TypeError, RangeError; DisposedError, StatusError
 */
export function signalSemaphores(operations: readonly SemaphoreOperation[], options: QueueOptions = {}): void {
  const { context, memory, handles, count, stream, needs } = prepare(operations, options, 'signalSemaphores')
  context._callDriver('cuSignalExternalSemaphoresAsync', () =>
    cuSignalExternalSemaphoresAsync(handles, memory, count, stream),
  )
  keepCaptured(context._handle, stream, [], needs)
}

/**
 * Makes later work wait until each semaphore is signaled or has reached its value (`cuWaitExternalSemaphoresAsync`).
 * @throws as {@link signalSemaphores}
 */
export function waitSemaphores(operations: readonly SemaphoreOperation[], options: QueueOptions = {}): void {
  const { context, memory, handles, count, stream, needs } = prepare(operations, options, 'waitSemaphores')
  context._callDriver('cuWaitExternalSemaphoresAsync', () =>
    cuWaitExternalSemaphoresAsync(handles, memory, count, stream),
  )
  keepCaptured(context._handle, stream, [], needs)
}

function prepare(operations: readonly SemaphoreOperation[], options: QueueOptions, api: string) {
  const { stream } = requireOptions(options, api, queueKeys)
  const encoded = encodeSemaphores(operations, api)
  return { ...encoded, stream: streamFor(encoded.context, stream, api) }
}
