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

/** How the linker works. */
export interface LinkerOptions extends JitOptions {
  /** The compute capability to make code for, times ten, such as 90. Default: that of the device. */
  readonly target?: number | undefined
}

/** What is added. */
export interface LinkInput {
  /** Default: by the contents of an image, by the ending of a file. */
  readonly kind?: InputKind | undefined
  /** What the logs call it. Default: input 1, input 2 and so on. */
  readonly name?: string | undefined
}

const targetOption = 9

/**
 * Makes one image of several (`cuLinkCreate`): kernels of one PTX call functions of another one, or of a library of
 * objects.
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
  /** The context that it works in. */
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

  /** Begins (`cuLinkCreate`). @throws TypeError, RangeError, DisposedError, StatusError */
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

  /** What the linker has said so far. @throws DisposedError */
  get log(): string {
    this._requireAlive()
    return this.#jit.infoLog
  }

  /**
   * Adds PTX, a cubin, a fat binary, an object of the host's compiler or a library of such (`cuLinkAddData`).
   * @throws StatusError with the linker's log in its description; RangeError for an image that is cut off; TypeError
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
      // The NUL that ends PTX counts.
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
   * Makes the image (`cuLinkComplete`): a cubin, which `Module.load` takes. It is made on this thread, which waits: a
   * driver of CUDA 13.0 ends the process at the next link after one that another thread has completed. Nothing can be
   * added afterwards.
   * @throws RangeError where it was made already; StatusError with the linker's log in its description, such as for
   * what is not defined
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

  /** The driver says nothing of what becomes of a link that goes on after its end. @throws RangeError */
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
    // A copy: the state has the image only as long as it lives.
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
