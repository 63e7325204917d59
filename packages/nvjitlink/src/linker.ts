import { createLane, type Lane } from '@shoal/ffi'
import { nvJitLinkInputType, nvjitlink } from '@shoal/nvjitlink-sys'
import { type Abortable, encodeOptions, runOffThread, untilAborted } from '@shoal/nvrtc/basics'
import {
  inspectKey,
  inspectLine,
  isInstance,
  type OptionKeys,
  optionalOptions,
  optionalSignal,
  PublicObject,
  requireKeyOf,
  requireOptions,
  requireText,
  wrongType,
} from '@shoal/types'
import { Linked } from './linked.js'
import { type Input, linking } from './linking.js'
import { type LinkOptions, linkRules } from './linkOptions.js'

/**
 * Kind of an input. With `any`, nvJitLink detects the kind (from 12.4 on); `index` is a file that lists other files.
 */
export type InputKind = 'ptx' | 'cubin' | 'fatbin' | 'object' | 'library' | 'ltoIr' | 'index' | 'any'

const kinds: Readonly<Record<InputKind, nvJitLinkInputType>> = {
  ptx: nvJitLinkInputType.NVJITLINK_INPUT_PTX,
  cubin: nvJitLinkInputType.NVJITLINK_INPUT_CUBIN,
  fatbin: nvJitLinkInputType.NVJITLINK_INPUT_FATBIN,
  object: nvJitLinkInputType.NVJITLINK_INPUT_OBJECT,
  library: nvJitLinkInputType.NVJITLINK_INPUT_LIBRARY,
  ltoIr: nvJitLinkInputType.NVJITLINK_INPUT_LTOIR,
  index: nvJitLinkInputType.NVJITLINK_INPUT_INDEX,
  any: nvJitLinkInputType.NVJITLINK_INPUT_ANY,
}

/** Options of an input. */
export interface InputOptions {
  /** Name of the input in messages. Default: its kind and number. */
  readonly name?: string | undefined
}

// All links run on one thread. After a refused input, such as a cubin of another architecture, nvJitLink (13.4) keeps a
// lock of the thread, and a link on another thread would wait forever. For the same reason there is no synchronous
// link.
let lane: Lane | undefined

const inputKeys: OptionKeys<InputOptions> = { name: true }
const linkKeys: OptionKeys<Abortable> = { signal: true }
const optionKeys = Object.fromEntries(Object.keys(linkRules).map((key) => [key, true])) as OptionKeys<LinkOptions>

/**
 * Inputs and options of a link, to link any number of times.
 *
 * A linker holds no resources of nvJitLink.
 *
 * @example
 * ```ts
 * const linked = await new Linker({ architecture: 'sm_90', linkTimeOptimization: true })
 *   .add('ltoIr', kernels.ltoIr)
 *   .add('ltoIr', helpers.ltoIr)
 *   .link()
 * const module = await Module.load(device, linked.image)
 * ```
 */
export class Linker extends PublicObject {
  /** The options as passed to nvJitLink. */
  readonly options: readonly string[]
  readonly #inputs: Input[] = []

  /** @throws TypeError, RangeError */
  constructor(options: LinkOptions) {
    super()
    const given = requireOptions(options, 'Linker', optionKeys)
    requireText(given.architecture, 'Linker', 'architecture')
    this.options = Object.freeze(encodeOptions(given, linkRules, 'Linker'))
  }

  /**
   * Adds an input (`nvJitLinkAddData`).
   *
   * Each link reads the bytes, so do not change them before the link.
   * @param data - PTX as text, or bytes.
   * @throws TypeError, RangeError
   */
  add(kind: InputKind, data: string | Uint8Array, options?: InputOptions): this {
    const type = requireKeyOf(kind, 'Linker.add', 'kind', kinds)
    const { name = `${kind} ${this.#inputs.length + 1}` } = optionalOptions(options, 'Linker.add', inputKeys)
    requireText(name, 'Linker.add', 'name')
    if (typeof data === 'string') {
      if (kind !== 'ptx' && kind !== 'any') throw wrongType('Linker.add', 'data', 'a Uint8Array, but for PTX', data)
      requireText(data, 'Linker.add', 'data')
    } else if (!isInstance(data, Uint8Array)) {
      throw wrongType('Linker.add', 'data', 'PTX text or a Uint8Array', data)
    } else if (data.length === 0) {
      throw new RangeError('Linker.add: data must not be empty')
    }
    this.#inputs.push({ type, name, data: typeof data === 'string' ? Buffer.from(`${data}\0`) : data })
    return this
  }

  /** Adds a file, which is read by the link (`nvJitLinkAddFile`). @throws TypeError, RangeError */
  addFile(kind: InputKind, path: string): this {
    const type = requireKeyOf(kind, 'Linker.addFile', 'kind', kinds)
    this.#inputs.push({ type, name: requireText(path, 'Linker.addFile', 'path') })
    return this
  }

  /**
   * Links on a native thread, one link after another, while the event loop continues (`nvJitLinkComplete`).
   *
   * @throws CompileError with the log and its messages; LibraryNotFoundError if nvJitLink is missing; RangeError
   * without inputs; AbortedError when `signal` fires: a link that has started continues, and its result is dropped;
   * TypeError
   */
  async link(options?: Abortable): Promise<Linked> {
    const signal = optionalSignal(optionalOptions(options, 'Linker.link', linkKeys).signal, 'Linker.link')
    if (this.#inputs.length === 0) throw new RangeError('Linker.link: at least one input must be added first')
    const inputs = [...this.#inputs]
    return untilAborted(
      async () => {
        lane ??= createLane()
        return new Linked(await runOffThread(linking(this.options, inputs), { lane, signal }))
      },
      signal,
      'Linker.link',
    )
  }

  override [inspectKey](): string {
    return inspectLine('Linker', { options: this.options.slice(0, 4).join(' '), inputs: this.#inputs.length })
  }
}

/** Returns the version of nvJitLink, such as `'13.4'`. @throws LibraryNotFoundError */
export function nvjitlinkVersion(): string {
  nvjitlink.load()
  return nvjitlink.versionText ?? 'unknown'
}
