import type { Device } from '@shoal/driver'
import { attempt, type Value } from '../answer.js'
import type { ReferenceCase } from '../cases.js'
import { deviceAnswer, poolAnswer, streamAnswer } from './devices.js'
import { graphAnswer } from './graphs.js'
import { kernelAnswer, occupancyAnswer } from './kernels.js'
import { splitAnswer } from './splits.js'
import { tensorMapAnswer } from './tensorMaps.js'
import { textureAnswer } from './textures.js'

/** Returns the safe packages' answer to a case. */
export function answer(device: Device, given: ReferenceCase): Value {
  return attempt(() => {
    switch (given.part) {
      case 'graph':
        return graphAnswer(device, given)
      case 'kernel':
        return kernelAnswer(device, given)
      case 'occupancy':
        return occupancyAnswer(device, given)
      case 'texture':
        return textureAnswer(device, given)
      case 'tensorMap':
        return tensorMapAnswer(device, given)
      case 'split':
        return splitAnswer(device, given)
      case 'device':
        return deviceAnswer(device, given)
      case 'stream':
        return streamAnswer(device, given)
      case 'pool':
        return poolAnswer(device, given)
    }
  })
}
