import { CUmemorytype } from '@shoal/cuda-sys/driver'
import {
  type ElementType,
  type MemoryLike,
  type MemoryRange,
  type OptionKeys,
  outOfRange,
  requireInstance,
  requireOptions,
  toMemoryRange,
  wrongType,
} from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import { type ElementValue, elementBytes } from '../../memory/buffers/elements.js'
import { requireApart } from '../../memory/buffers/overlap.js'
import type { PinnedBuffer } from '../../memory/buffers/pinnedBuffer.js'
import { isReachedByCopies } from '../../memory/buffers/reach.js'
import { describePitchedCopy } from '../../memory/pitched/describeCopy.js'
import { isPitched } from '../../memory/pitched/isPitched.js'
import type { PitchedBuffer } from '../../memory/pitched/pitchedBuffer.js'
import type { ArrayNodeOptions } from '../texture/arrayCopy.js'
import type { CudaArray } from '../texture/cudaArray.js'
import { isCudaArray } from '../texture/isCudaArray.js'
import { NodeDescription, type NodeWords } from './nodeDescription.js'

const unified = CUmemorytype.CU_MEMORYTYPE_UNIFIED
/** Widest element of `cuMemsetD32` in bytes. */
const widest = 4

/** Offsets of a fill's and a copy's parameters in a `CUgraphNodeParams`. */
const memsetOffsets = { dst: 16, pitch: 24, value: 32, elementSize: 36, width: 40, height: 48, ctx: 56 } as const
const memcpyOffsets = {
  copyCtx: 24,
  srcMemoryType: 64,
  srcDevice: 80,
  dstMemoryType: 152,
  dstDevice: 168,
  WidthInBytes: 208,
  Height: 216,
  Depth: 224,
} as const

const arrayKeys: OptionKeys<ArrayNodeOptions> = { region: true, at: true, pitch: true, rows: true }

/**
 * Describes a node that copies `source` to `target`, which must have the same length (`CU_GRAPH_NODE_TYPE_MEMCPY`).
 *
 * The memory is device memory of any device and package, or page-locked or managed memory. For the rows of a
 * `PitchedBuffer` or its region, the other side has the same extent, or is memory with the same number of bytes. Either
 * side can be a `CudaArray`, with all texels or a region. Both sides must exist at each launch of the graph. An
 * ordinary array cannot be part of a graph.
 * @param options for arrays, as for `CudaArray.copyFrom`
 * @throws TypeError for anything else, or another dtype; RangeError for another length; DisposedError
 *
 * @example
 * graph.add(copyNode(result, scratch), { dependencies: [work] })
 * graph.add(copyNode(pixels, array, { region: { width: 64, height: 64 } }))
 */
export function copyNode(
  target: MemoryLike | PinnedBuffer<ElementType> | CudaArray,
  source: MemoryLike | PinnedBuffer<ElementType> | CudaArray,
  options: ArrayNodeOptions = {},
): NodeDescription {
  const api = 'copyNode'
  if (isCudaArray(target) || isCudaArray(source))
    return arrayCopyNode(target as MemoryLike, source as MemoryLike, options, api)
  requireOptions<object>(options, api, {})
  if (isPitched(target) || isPitched(source)) return pitchedCopyNode(target as MemoryLike, source as MemoryLike, api)
  const [to, from] = [rangeOf(target, api, 'target'), rangeOf(source, api, 'source')]
  if (to.dtype !== undefined && from.dtype !== undefined && to.dtype !== from.dtype) {
    throw wrongType(api, 'source', `of ${to.dtype} (reinterpret() one of them)`, from.dtype)
  }
  if (to.byteLength !== from.byteLength) {
    throw outOfRange(api, 'source', `as long as target, ${to.byteLength} bytes`, from.byteLength)
  }
  requireSome(to.byteLength, api, 'target')
  requireApart(to.address, from.address, to.byteLength, api)
  return new NodeDescription('memcpy', {
    needs: new Map<object, () => void>([
      [target, () => rangeOf(target, api, 'target')],
      [source, () => rangeOf(source, api, 'source')],
    ]),
    writeWords: (words, context) => {
      const { u32, u64 } = words
      u64[memcpyOffsets.copyCtx / 8] = contextFor(context, [to, from])
      u32[memcpyOffsets.srcMemoryType / 4] = unified
      u64[memcpyOffsets.srcDevice / 8] = from.address
      u32[memcpyOffsets.dstMemoryType / 4] = unified
      u64[memcpyOffsets.dstDevice / 8] = to.address
      putSize(words, memcpyOffsets.WidthInBytes, to.byteLength)
      putSize(words, memcpyOffsets.Height, 1)
      putSize(words, memcpyOffsets.Depth, 1)
    },
  })
}

function pitchedCopyNode(target: MemoryLike, source: MemoryLike, api: string): NodeDescription {
  const spanOf = (end: MemoryLike, name: string): MemoryRange => (isPitched(end) ? end._span : rangeOf(end, api, name))
  const [to, from] = [spanOf(target, 'target'), spanOf(source, 'source')]
  const copyParams = describePitchedCopy(target, source, api)
  return new NodeDescription('memcpy', {
    needs: new Map<object, () => void>([
      [target, () => spanOf(target, 'target')],
      [source, () => spanOf(source, 'source')],
    ]),
    write: (context) => ({ parameters: { memcpy: { copyCtx: contextFor(context, [to, from]), copyParams } } }),
  })
}

function arrayCopyNode(
  target: MemoryLike,
  source: MemoryLike,
  options: ArrayNodeOptions,
  api: string,
): NodeDescription {
  requireOptions(options, api, arrayKeys)
  const checkOf = (end: unknown, name: string): (() => void) => {
    const check = isCudaArray(end) ? () => void end._use() : () => void rangeOf(end, api, name)
    check()
    return check
  }
  const needs = new Map<object, () => void>([
    [target, checkOf(target, 'target')],
    [source, checkOf(source, 'source')],
  ])
  const memcpy = isCudaArray(target)
    ? target._describeCopy(source, true, options, api)
    : (source as unknown as CudaArray)._describeCopy(target, false, options, api)
  return new NodeDescription('memcpy', { needs, write: () => ({ parameters: { memcpy } }) })
}

/**
 * Describes a node that fills every element of `buffer` with one value (`CU_GRAPH_NODE_TYPE_MEMSET`). Fills only the
 * elements of pitched memory, not its gaps.
 * @throws TypeError; RangeError for a value that the element type cannot hold, for a value wider than 4 bytes whose
 * 32-bit parts differ, and for slices with other rows between them, because one CUDA fill cannot write these;
 * DisposedError
 *
 * @example
 * const clear = graph.add(fillNode(sums, 0))
 */
export function fillNode<E extends ElementType>(
  buffer: DeviceBuffer<E> | PitchedBuffer<E>,
  value: ElementValue<E>,
): NodeDescription {
  const api = 'fillNode'
  if (!isPitched(buffer)) requireInstance(buffer, api, 'buffer', DeviceBuffer)
  requireSome(buffer.byteLength, api, 'buffer')
  const rows = isPitched(buffer) ? rowsOf(buffer, api) : { pitch: 0, height: 1, width: buffer.byteLength }
  const bytes = elementBytes(buffer.dtype, value, api, 'value')
  const elementSize = patternOf(bytes)
  if (elementSize === undefined) {
    throw outOfRange(
      api,
      'value',
      `one whose 32-bit parts are alike, as elements of ${bytes.byteLength} bytes are filled`,
      value,
    )
  }
  const pattern =
    elementSize === 1 ? bytes.getUint8(0) : elementSize === 2 ? bytes.getUint16(0, true) : bytes.getUint32(0, true)
  const address = buffer.address
  return new NodeDescription('memset', {
    needs: new Map([[buffer, () => void buffer._use()]]),
    writeWords: (words) => {
      const { u32, u64 } = words
      u64[memsetOffsets.dst / 8] = address
      u32[memsetOffsets.value / 4] = pattern
      u32[memsetOffsets.elementSize / 4] = elementSize
      putSize(words, memsetOffsets.pitch, rows.pitch)
      putSize(words, memsetOffsets.width, rows.width / elementSize)
      putSize(words, memsetOffsets.height, rows.height)
      u64[memsetOffsets.ctx / 8] = buffer.context.handle
    },
  })
}

/** Returns pitched memory's distance between rows in bytes, its rows, and the bytes per row. */
function rowsOf({ depth, height, _side: side, _size: { width } }: PitchedBuffer<ElementType>, api: string) {
  // Slices without a gap between them are rows of one large slice.
  if (depth > 1 && side.rows !== height) {
    throw outOfRange(
      api,
      'buffer',
      'of slices without other rows between them (a node a slice)',
      `${height} of ${side.rows} rows`,
    )
  }
  return { pitch: side.pitch, height: height * depth, width }
}

/** Writes a `size_t` at an offset. */
function putSize({ u32 }: NodeWords, offset: number, value: number): void {
  u32[offset / 4] = value
  u32[offset / 4 + 1] = value / 2 ** 32
}

/** Returns how many bytes form the element when repeated: 1, 2 or 4; undefined if more are needed. */
function patternOf(element: DataView): 1 | 2 | 4 | undefined {
  const { byteLength } = element
  for (const size of [1, 2, widest] as const) {
    if (byteLength % size !== 0) continue
    let isRepeated = true
    for (let at = size; at < byteLength; at += 1) isRepeated &&= element.getUint8(at) === element.getUint8(at - size)
    if (isRepeated) return size
  }
  return undefined
}

/** Returns the range of memory that C can reach when the graph runs. */
function rangeOf(memory: unknown, api: string, name: string): MemoryRange {
  if (ArrayBuffer.isView(memory)) {
    throw wrongType(
      api,
      name,
      'device, page-locked or managed memory: an ordinary array is not there when a graph runs',
      memory,
    )
  }
  return toMemoryRange(memory as MemoryLike, api, name)
}

/** Refuses empty copies and fills, which CUDA does not support in graphs. */
function requireSome(byteLength: number, api: string, name: string): void {
  if (byteLength === 0) throw outOfRange(api, name, 'memory of at least one byte', byteLength)
}

/** Returns the context of a copy: that of device memory, else the graph's. This device may lack access to one side. */
function contextFor(context: Context, ranges: readonly MemoryRange[]): bigint {
  const [{ deviceOrdinal: first } = {}] = ranges
  if (ranges.some(({ access, deviceOrdinal }) => access !== undefined || deviceOrdinal !== first)) {
    const away = ranges.find((range) => !isReachedByCopies(context, range))
    return away === undefined || away.context === 0n ? context.handle : away.context
  }
  return ranges.find(({ deviceOrdinal, context: own }) => deviceOrdinal >= 0 && own !== 0n)?.context ?? context.handle
}
