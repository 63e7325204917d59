import { DisposedError, type ElementType, isInstance, propertyOf, wrongType } from '@shoal/types'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import { GraphExec } from './graphExec.js'

/** What throws once an object that is disposed of is gone; it is asked here, too. @throws TypeError, DisposedError */
export function checkOf(object: { readonly disposed: boolean }, api: string, name: string): () => void {
  if (typeof propertyOf(object, 'disposed') !== 'boolean')
    throw wrongType(api, name, 'an object that is disposed of', object)
  const check = checkFor(object, api)
  check()
  return check
}

function checkFor(object: { readonly disposed: boolean }, api: string): () => void {
  // A view of memory of another object goes with that.
  if (isInstance<DeviceBuffer<ElementType>>(object, DeviceBuffer as never)) return () => void object._use()
  // Kernels may launch it, and find what its nodes need.
  if (isInstance<GraphExec>(object, GraphExec as never)) return () => object._requireUsable(api)
  return () => {
    if (object.disposed) throw new DisposedError(object.constructor.name)
  }
}
