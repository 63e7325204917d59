import { CUDA_MEMCPY3D, CUDA_MEMCPY3D_BATCH_OP, CUmemorytype, cuMemcpy3DBatchAsync } from '@shoal/cuda-sys/driver'
import type { StructValue } from '@shoal/ffi'
import {
  type ElementType,
  type MemoryLike,
  type OptionKeys,
  outOfRange,
  requireList,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { PreparedCopies } from '../../memory/buffers/preparedCopies.js'
import { describePitchedCopy } from '../../memory/pitched/describeCopy.js'
import { isPitched } from '../../memory/pitched/isPitched.js'
import type { PitchedBuffer } from '../../memory/pitched/pitchedBuffer.js'
import type { ArrayNodeOptions } from './arrayCopy.js'
import type { CudaArray } from './cudaArray.js'
import { isCudaArray } from './isCudaArray.js'

/** One copy of rows and slices in a batch. At least one side is a `PitchedBuffer` or a `CudaArray`. */
export interface BatchedCopy3D extends ArrayNodeOptions {
  /** Memory or array to write. */
  readonly target: PitchedBuffer<ElementType> | CudaArray | MemoryLike
  /** Memory or array to read: it has the extent of the target, or is memory with the same number of bytes. */
  readonly source: PitchedBuffer<ElementType> | CudaArray | MemoryLike
}

type End = BatchedCopy3D['target']

const copyKeys: OptionKeys<BatchedCopy3D> = {
  target: true,
  source: true,
  region: true,
  at: true,
  pitch: true,
  rows: true,
}
/** Keys of the two sides. All other keys are for arrays. */
const endKeys = { target: true, source: true }
// Values of CUmemcpy3DOperandType and CUmemcpySrcAccessOrder
const operandTypes = { pointer: 1, array: 2 } as const
const inStreamOrder = 1

/**
 * Checks and packs a batch of copies of rows and slices, which `launch({ stream })` queues together
 * (`cuMemcpy3DBatchAsync`). The sides are pitched memory of the same extent, arrays or their regions, and contiguous
 * memory. For arrays, `region`, `at`, `pitch` and `rows` have the same meaning as for `CudaArray.copyFrom`; a
 * `PitchedBuffer` defines its own pitch and rows.
 * @throws TypeError, RangeError for sides that do not match; DisposedError
 *
 * @example
 * const targetOf = (index: number) => image.region({ x: index * 64, width: 64 })
 * const copies = prepareCopies3D(device, tiles.map((source, index) => ({ target: targetOf(index), source })))
 * copies.launch({ stream })
 */
export function prepareCopies3D(owner: DeviceOrContext, copies: readonly BatchedCopy3D[]): PreparedCopies {
  const api = 'prepareCopies3D'
  const context = contextOf(owner, api)
  const list = requireList(copies, api, 'copies', 'an array of copies')
  if (list.length === 0) throw outOfRange(api, 'copies', 'at least one copy', 0)
  const operations = new Uint8Array(list.length * CUDA_MEMCPY3D_BATCH_OP.size)
  const ends: End[] = []
  for (const [index, copy] of list.entries()) {
    const name = `copies[${index}]`
    requireOptions(copy, api, copyKeys, name)
    // Read each getter of the copy only once.
    const { target, source, ...options } = copy
    operations.set(
      operationOf(context, target, source, options, `${api}: ${name}`),
      index * CUDA_MEMCPY3D_BATCH_OP.size,
    )
    ends.push(target, source)
  }
  const memories = ends.filter((end): end is MemoryLike => !isCudaArray(end))
  return new PreparedCopies(context, list.length, memories, ends.filter(isCudaArray), {
    name: 'cuMemcpy3DBatchAsync',
    queue: (stream) => cuMemcpy3DBatchAsync(list.length, operations, 0, stream),
  })
}

/** Encodes the `CUDA_MEMCPY3D_BATCH_OP` of a copy. */
function operationOf(context: Context, target: End, source: End, options: ArrayNodeOptions, api: string): Uint8Array {
  const array = isCudaArray(target) ? target : isCudaArray(source) ? source : undefined
  if (array === undefined) {
    requireOptions<object>(options, api, endKeys)
    return pack(describePitchedCopy(target, source, api), 1, api)
  }
  if (array.context._handle !== context._handle)
    throw wrongType(api, 'copies', `arrays of device ${context.device.ordinal}`, array)
  const other = array === target ? source : target
  const rows = isPitched(other) ? { pitch: other._side.pitch, rows: other._side.rows } : {}
  const all = { ...rows, ...options }
  const { copyParams } = array._describeCopy(other as MemoryLike, array === target, all, api)
  return pack(copyParams, array._texelBytes, api)
}

/** Encodes sizes in elements. A row of memory has a whole number of them. */
function pack(parameters: StructValue<CUDA_MEMCPY3D>, elementBytes: number, api: string): Uint8Array {
  const found = CUDA_MEMCPY3D.read(CUDA_MEMCPY3D.allocate(parameters))
  const bytes = BigInt(elementBytes)
  const operand = (side: 'src' | 'dst') => {
    const [x, y, z] = [found[`${side}XInBytes`], found[`${side}Y`], found[`${side}Z`]]
    const pitch = found[`${side}Pitch`]
    if (found[`${side}MemoryType`] === CUmemorytype.CU_MEMORYTYPE_ARRAY)
      return {
        type: operandTypes.array,
        op: { array: { array: found[`${side}Array`], offset: { x: x / bytes, y, z } } },
      }
    if (pitch % bytes !== 0n)
      throw outOfRange(api, 'pitch', `a multiple of the ${elementBytes} bytes of a texel`, pitch)
    const ptr = { ptr: found[`${side}Device`], rowLength: pitch / bytes, layerHeight: found[`${side}Height`] }
    return { type: operandTypes.pointer, op: { ptr } }
  }
  return CUDA_MEMCPY3D_BATCH_OP.allocate({
    src: operand('src'),
    dst: operand('dst'),
    extent: { width: found.WidthInBytes / bytes, height: found.Height, depth: found.Depth },
    srcAccessOrder: inStreamOrder,
  } as never)
}
