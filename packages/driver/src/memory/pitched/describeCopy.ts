import { type MemoryLike, outOfRange, toMemoryRange, wrongType } from '@shoal/types'
import { nameOfType } from '../buffers/elementType.js'
import { requireRowsApart } from '../buffers/overlap.js'
import { sides } from './boxCopy.js'
import { isPitched } from './isPitched.js'

/**
 * Describes a copy of all rows for C: between pitched memory of the same extent, or between pitched memory and
 * contiguous memory of as many bytes.
 * @throws TypeError, RangeError for sides that do not match; DisposedError
 */
export function describePitchedCopy(target: unknown, source: unknown, api: string) {
  const pitched = [target, source].find(isPitched)
  if (pitched === undefined)
    throw wrongType(api, 'source', 'a PitchedBuffer or a CudaArray where target is none', source)
  const sideOf = (end: unknown, name: string) => {
    const { dtype, _size: size } = pitched
    if (isPitched(end)) {
      end._use()
      if (end.dtype !== dtype) throw wrongType(api, name, `of ${nameOfType(dtype)}`, nameOfType(end.dtype))
      if (end.width !== pitched.width || end.height !== pitched.height || end.depth !== pitched.depth) {
        const expected = `of ${pitched.width} × ${pitched.height} × ${pitched.depth} elements (region() takes parts)`
        throw outOfRange(api, name, expected, `${end.width} × ${end.height} × ${end.depth}`)
      }
      return end._side
    }
    const { address, byteLength, dtype: own } = toMemoryRange(end as MemoryLike, api, name)
    if (own !== undefined && typeof dtype === 'string' && own !== dtype)
      throw wrongType(api, name, `of ${dtype} (reinterpret() it)`, own)
    if (byteLength !== pitched.byteLength)
      throw outOfRange(api, name, `of ${pitched.byteLength} bytes, as many as all rows have`, byteLength)
    return { address, pitch: size.width, rows: size.height }
  }
  const [to, from] = [sideOf(target, 'target'), sideOf(source, 'source')]
  requireRowsApart(to, from, pitched._size, api)
  return sides(to, from, pitched._size)
}
