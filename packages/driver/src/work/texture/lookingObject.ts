import { DisposedError, wrongType } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { ContextObject, type Destroyer } from '../../core/context/contextObject.js'
import type { KernelObject } from '../launch/signature.js'
import type { CheckedResource } from './textureResource.js'

/** Base class of textures and surfaces: kernel arguments that give access to another object. */
export abstract class LookingObject<T extends 'texture' | 'surface'> extends ContextObject implements KernelObject<T> {
  /** The parameter type of this object. */
  readonly parameterType: T
  /** The object behind the texture or surface. */
  readonly resource: CheckedResource['object']
  readonly #requireThere: () => void

  constructor(type: T, context: Context, handle: bigint, resource: CheckedResource, destroyer: Destroyer) {
    super(context, handle, `A ${type} of a ${resource.object[Symbol.toStringTag]}`, destroyer)
    this.parameterType = type
    this.resource = resource.object
    this.#requireThere = resource.requireThere
  }

  /** @internal Returns the handle, after checking the object behind it. @throws DisposedError */
  override _use(): bigint {
    const handle = super._use()
    this.#requireThere()
    return handle
  }

  /** @internal Writes the handle as a kernel argument. @throws TypeError, DisposedError */
  _writeArgument(target: DataView, offset: number, context: Context, api: string, name: string): void {
    if (this.disposed) throw new DisposedError({ object: `the ${this.kind} ${name}`, operation: api })
    const handle = this._use()
    if (this.context._handle !== context._handle) {
      const { ordinal } = context.device
      throw wrongType(api, name, `a ${this.kind} of device ${ordinal}, where the kernel runs`, this)
    }
    target.setBigUint64(offset, handle, true)
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { ...super.inspectFacts(), resource: this.resource[Symbol.toStringTag] }
  }
}
