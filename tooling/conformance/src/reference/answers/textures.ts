import {
  CUDA_ARRAY3D_DESCRIPTOR,
  CUDA_TEXTURE_DESC,
  cuArray3DGetDescriptor,
  cuTexObjectGetTextureDesc,
} from '@shoal/cuda-sys/driver'
import { type Device, DeviceBuffer } from '@shoal/driver'
import { CudaArray, MipmappedArray, TextureObject, type TextureResource } from '@shoal/driver/texture'
import { type DType, dtypeInfo } from '@shoal/types'
import { attempt, hex, type Value, written } from '../answer.js'
import type { TextureCase } from '../cases.js'
import { moduleOf } from './kernelOf.js'

const bytesOf = (digits: string): Uint8Array => Uint8Array.from(Buffer.from(digits, 'hex'))
const placeBytes = 32

export function textureAnswer(device: Device, given: TextureCase): Value {
  const made = new Made()
  try {
    return answer(device, given, made)
  } finally {
    made.dispose()
  }
}

/** Disposes of its objects, last made first. */
class Made {
  readonly #objects: Disposable[] = []

  use<T extends Disposable>(object: T): T {
    this.#objects.push(object)
    return object
  }

  dispose(): void {
    for (const object of this.#objects.reverse()) object[Symbol.dispose]()
  }
}

function answer(device: Device, given: TextureCase, made: Made): Value {
  const found: Record<string, Value> = {}
  const resource = resourceOf(device, given, made)
  if (resource instanceof CudaArray)
    found['array'] = hex(written(CUDA_ARRAY3D_DESCRIPTOR.size, (out) => cuArray3DGetDescriptor(out, resource.handle)))
  let texture: TextureObject | undefined
  found['texture'] = attempt(() => {
    texture = made.use(TextureObject.create(resource, given.options))
    const { handle } = texture
    return hex(written(CUDA_TEXTURE_DESC.size, (out) => cuTexObjectGetTextureDesc(out, handle)))
  })
  if (texture === undefined) return { ...found, samples: found['texture'] }
  const places = bytesOf(given.places)
  const count = places.length / placeBytes
  const from = made.use(DeviceBuffer.from(device, places))
  const to = made.use(DeviceBuffer.zeros(device, 'u8', count * 16))
  const sample = moduleOf(device, given.ptx).kernel('sample', ['texture', 'ptr', 'ptr', 'u32'])
  sample.launch({ grid: Math.ceil(count / 64), block: 64 }, texture, from, to, count)
  return { ...found, samples: hex(to.toArraySync()) }
}

function resourceOf(device: Device, given: TextureCase, made: Made): TextureResource {
  const { array: shape, pitch, levels } = given
  if (pitch !== undefined) {
    const memory = made.use(DeviceBuffer.from(device, bytesOf(given.texels))).reinterpret(shape.format as 'f32')
    return { memory, channels: shape.channels, width: shape.width, height: shape.height as number, pitch }
  }
  if (levels !== undefined) {
    const array = made.use(MipmappedArray.create(device, { ...shape, levels: levels.length }))
    for (const [index, texels] of levels.entries()) fill(array.level(index), texels)
    return array
  }
  return fill(made.use(CudaArray.create(device, shape)), given.texels)
}

/** Types of texels on the host, if their names differ from the format's. */
const hostTypes = { unorm8: 'u8', snorm16: 'i16' } as const

function fill(array: CudaArray, texels: string): CudaArray {
  const dtype = hostTypes[array.format as keyof typeof hostTypes] ?? (array.format as DType)
  const { buffer } = bytesOf(texels)
  return array.copyFromSync(new (dtypeInfo(dtype).typedArray)(buffer as ArrayBuffer))
}
