import {
  type CUjitInputType,
  type CUlinkState,
  cuLinkAddData,
  cuLinkAddFile,
  cuLinkComplete,
  cuLinkCreate,
  cuLinkDestroy,
} from '@shoal/cuda-sys/driver'
import { NativeMemory, readMemory } from '@shoal/ffi'
import {
  loadedFrom,
  outOfRange,
  requireInteger,
  requireKeyOf,
  requireMade,
  requireOptions,
  requireText,
  settledNow,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { checkRelease, driverError, Status } from '../../core/errors.js'
import { forgetLeak, processIsEnding, Resource, watchForLeak } from '../../core/lifetime.js'
import { imageMemory, type ModuleImage, requireImagePath } from '../module/image.js'
import { JitBlock, type JitOptions, jitKeys } from '../module/jit.js'
import { type InputKind, kindOfFile, kindOfImage, kinds } from './inputs.js'

/** Options of the linker. */
export interface LinkerOptions extends JitOptions {
  /** Target compute capability times ten, such as 90. Default: the compute capability of the device. */
  readonly target?: number | undefined
}

/** Options of one input. */
export interface LinkInput {
  /** Kind of the input. Default: detected from an image's contents or a file's extension. */
  readonly kind?: InputKind | undefined
  /** Name of the input in logs. Default: input 1, input 2 and so on. */
  readonly name?: string | undefined
}

const targetOption = 9

/**
 * Links several images into one (`cuLinkCreate`), so that a kernel can call functions of other PTX or of an object
 * library.
 *
 * @example
 * ```ts
 * using linker = Linker.create(device)
 * const image = await linker.add(kernels).add(functions).complete()
 * using module = await Module.load(device, image)
 * ```
 */
export class Linker extends Resource {
  /** @internal */
  static override get [loadedFrom](): string {
    return import.meta.url
  }
  protected readonly kind = 'Linker'
  /** The context in which the linker works. */
  readonly context: Context
  readonly #handle: CUlinkState
  readonly #jit: JitBlock
  #count = 0
  #isComplete = false

  private constructor(context: Context, handle: CUlinkState, jit: JitBlock) {
    requireMade(handle, 'Linker', 'Linker.create')
    super()
    this.context = context
    this.#handle = handle
    this.#jit = jit
    context._addChild()
    watchForLeak(this, `A Linker on device ${context.device.ordinal}`, () => {
      destroy(context, handle, jit)
      return 'it is destroyed now'
    })
  }

  /** Creates a linker (`cuLinkCreate`). @throws TypeError, RangeError, DisposedError, StatusError */
  static create(owner: DeviceOrContext, options: LinkerOptions = {}): Linker {
    const api = 'Linker.create'
    const context = contextOf(owner, api)
    const given = requireOptions<LinkerOptions>(options, api, { ...jitKeys, target: true })
    const target = given.target === undefined ? undefined : requireInteger(given.target, api, 'target', 50, 999)
    const jit = new JitBlock(given, api, target === undefined ? [] : [[targetOption, BigInt(target)]])
    const { count, options: names, values, result } = jit
    context._callDriver('cuLinkCreate', () => cuLinkCreate(count, names, values, result))
    return new Linker(context, result.u64[0] as CUlinkState, jit)
  }

  /** The `CUlinkState`. @throws DisposedError */
  get handle(): CUlinkState {
    this._requireAlive()
    this.context._requireAlive()
    return this.#handle
  }

  /** The linker's log so far. @throws DisposedError */
  get log(): string {
    this._requireAlive()
    return this.#jit.infoLog
  }

  /**
   * Adds PTX, a cubin, a fat binary, a host compiler's object file or an archive of these (`cuLinkAddData`).
   * @throws StatusError with the linker's log in its description; RangeError for an incomplete image; TypeError
   */
  add(image: ModuleImage, options: LinkInput = {}): this {
    const api = 'Linker.add'
    const { kind, name = `input ${this.#count + 1}` } = requireOptions<LinkInput>(options, api, {
      kind: true,
      name: true,
    })
    requireText(name, api, 'name')
    const type = kind === undefined ? kindOfImage(image) : kind
    const code = requireKeyOf(type, api, 'kind', kinds) as CUjitInputType
    const { handle } = this
    this.#requireOpen(api)
    const memory = imageMemory(image, api, type === 'library')
    try {
      // The size of PTX includes the final NUL.
      const size = code === kinds.ptx ? memory.byteLength : memory.byteLength - 1
      this.#call('cuLinkAddData', name, () => cuLinkAddData(handle, code, memory, size, name, 0, null, null))
    } finally {
      memory.dispose()
    }
    this.#count += 1
    return this
  }

  /** Adds a file, which the driver reads (`cuLinkAddFile`). @throws as {@link add} */
  addFile(path: string | URL, options: Omit<LinkInput, 'name'> = {}): this {
    const api = 'Linker.addFile'
    const file = requireImagePath(path, api)
    const { kind = kindOfFile(file) } = requireOptions<Omit<LinkInput, 'name'>>(options, api, { kind: true })
    const code = requireKeyOf(kind, api, 'kind', kinds) as CUjitInputType
    const { handle } = this
    this.#requireOpen(api)
    this.#call('cuLinkAddFile', file, () => cuLinkAddFile(handle, code, file, 0, null, null))
    this.#count += 1
    return this
  }

  /**
   * Creates the image, a cubin for `Module.load` (`cuLinkComplete`). Blocks this thread: a driver of CUDA 13.0 ends the
   * process at the next link if another thread has completed one. Afterwards no input can be added.
   * @throws RangeError when it was called before; StatusError with the linker's log in its description, such as for an
   * undefined function
   */
  async complete(): Promise<Uint8Array> {
    return settledNow(this.#complete('Linker.complete'))
  }

  /** Like {@link complete}, without a promise. */
  completeSync(): Uint8Array {
    return this.#complete('Linker.completeSync')
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal, inputs: this.#count }
  }

  protected release(): void {
    forgetLeak(this)
    destroy(this.context, this.#handle, this.#jit)
  }

  #call(api: string, what: string, call: () => number): void {
    const status = this.context.run(call)
    if (status !== Status.success) throw driverError(status, api, `${what}\n${this.#jit.errorLog}`.trim())
  }

  /** Refuses use after complete(), because the driver does not define its result. @throws RangeError */
  #requireOpen(api: string): void {
    if (this.#isComplete) throw outOfRange(api, 'this', 'a Linker whose image is not complete yet', this)
  }

  #complete(api: string): Uint8Array {
    const { handle } = this
    this.#requireOpen(api)
    const out = NativeMemory.allocate(16)
    const status: number = this.context.run(() => cuLinkComplete(handle, out, out.address + 8n))
    if (status !== Status.success) throw driverError(status, 'cuLinkComplete', this.#jit.errorLog)
    this.#isComplete = true
    // Copy the image, because it ends with the linker's state.
    return readMemory(out.u64[0] as bigint, Number(out.u64[1]))
  }
}

function destroy(context: Context, handle: CUlinkState, jit: JitBlock): void {
  try {
    if (!context.disposed && !processIsEnding()) {
      checkRelease(
        context.run(() => cuLinkDestroy(handle)),
        'cuLinkDestroy',
      )
    }
  } finally {
    jit.dispose()
    context._removeChild()
  }
}
