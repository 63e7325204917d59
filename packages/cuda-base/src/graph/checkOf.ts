import { DeviceBuffer } from '@shoal/cuda-base'
import { DisposedError, type ElementType, isInstance, propertyOf, wrongType } from '@shoal/types'

/** What throws once an object that is disposed of is gone; it is asked here, too. @throws TypeError, DisposedError */
export function checkOf(object: { readonly disposed: boolean }, api: string, name: string): () => void {
  if (typeof propertyOf(object, 'disposed') !== 'boolean')
    throw wrongType(api, name, 'an object that is disposed of', object)
  // A view of memory of another object goes with that.
  const check = isInstance<DeviceBuffer<ElementType>>(object, DeviceBuffer as never)
    ? (): void => void object._use()
    : (): void => {
        if (object.disposed) throw new DisposedError(object.constructor.name)
      }
  check()
  return check
}
