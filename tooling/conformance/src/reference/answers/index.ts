import type { Device } from '@shoal/driver'
import { attempt, type Value } from '../answer.js'
import type { ReferenceCase } from '../cases.js'
import { graphAnswer } from './graphs.js'
import { kernelAnswer, occupancyAnswer } from './kernels.js'
import { textureAnswer } from './textures.js'

/** What the safe packages answer to a case. */
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
    }
  })
}
