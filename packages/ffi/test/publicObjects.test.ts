import { createLane, DescriptorSocket, NativeMemory } from '@shoal/ffi'
import { PublicObject } from '@shoal/types'
import { expect, test } from 'vitest'
import { expectDescribed, expectDistinct } from './support/publicObjects.js'

test('two lanes, sockets or blocks of memory are never equal, and serialize to one line of JSON each', () => {
  const pairs: (readonly [PublicObject & Disposable, PublicObject & Disposable])[] = [
    [createLane(), createLane()],
    DescriptorSocket.pair(),
    [NativeMemory.allocate(8), NativeMemory.allocate(8)],
  ]
  for (const pair of pairs) {
    expect(pair[0]).toBeInstanceOf(PublicObject)
    expectDistinct(...pair)
    for (const one of pair) {
      expectDescribed(one)
      one[Symbol.dispose]()
      expectDescribed(one)
    }
  }
})
