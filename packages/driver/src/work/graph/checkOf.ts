import { DisposedError, type ElementType, isInstance, propertyOf, wrongType } from '@shoal/types'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import { GraphExec } from './graphExec.js'

/**
 * Returns a check that throws after an object was disposed of. Runs the check once here. @throws TypeError,
 * DisposedError
 */
export function checkOf(object: { readonly disposed: boolean }, api: string, name: string): () => void {
  if (typeof propertyOf(object, 'disposed') !== 'boolean')
    throw wrongType(api, name, 'an object that is disposed of', object)
  const check = checkFor(object, api)
  check()
  return check
}

function checkFor(object: { readonly disposed: boolean }, api: string): () => void {
  // A view ends with the object whose memory it views.
  if (isInstance<DeviceBuffer<ElementType>>(object, DeviceBuffer as never)) return () => void object._use()
  // A kernel may launch the graph. The graph's nodes then need their resources too.
  if (isInstance<GraphExec>(object, GraphExec as never)) return () => object._requireUsable(api)
  return () => {
    if (object.disposed) throw new DisposedError(object.constructor.name)
  }
}
