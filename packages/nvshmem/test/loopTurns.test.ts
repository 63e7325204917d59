import type { Session, SymmetricBuffer } from '@shoal/nvshmem'
import { expect, test } from 'vitest'
import { loopTurns } from '../../ffi/test/support/loopTurns.js'
import { onePe } from './fixtures/onePe.js'

const pe = onePe()
const stream = null

interface Operands {
  readonly session: Session
  readonly target: SymmetricBuffer<'f32'>
  readonly source: SymmetricBuffer<'f32'>
  readonly signal: SymmetricBuffer<'u64'>
}

let made: Operands | undefined

async function operands(): Promise<Operands> {
  const { session } = pe
  made ??= {
    session,
    target: await session.allocate('f32', 8),
    source: await session.allocate('f32', 8),
    signal: await session.allocate('u64', 1),
  }
  return made
}

const [to, on] = [{ pe: 0 }, { pe: 0, stream }]
const awaitables: { readonly [name: string]: (of: Operands) => PromiseLike<unknown> } = {
  'Session.barrierAll': ({ session }) => session.barrierAll(),
  'Session.barrierAllOnStream': ({ session }) => session.barrierAllOnStream({ stream }),
  'Session.syncAll': ({ session }) => session.syncAll(),
  'Session.syncAllOnStream': ({ session }) => session.syncAllOnStream({ stream }),
  'Session.quiet': ({ session }) => session.quiet(),
  'Session.quietOnStream': ({ session }) => session.quietOnStream({ stream }),
  'Session.fence': ({ session }) => session.fence(),
  'Session.put': ({ session, target, source }) => session.put(target, source, to),
  'Session.putNonBlocking': ({ session, target, source }) => session.putNonBlocking(target, source, to),
  'Session.putOnStream': ({ session, target, source }) => session.putOnStream(target, source, on),
  'Session.putNonBlockingOnStream': ({ session, target, source }) => session.putNonBlockingOnStream(target, source, on),
  'Session.get': ({ session, target, source }) => session.get(target, source, to),
  'Session.getNonBlocking': ({ session, target, source }) => session.getNonBlocking(target, source, to),
  'Session.getOnStream': ({ session, target, source }) => session.getOnStream(target, source, on),
  'Session.putElement': ({ session, target }) => session.putElement(target, 1, to),
  'Session.getElement': ({ session, source }) => session.getElement(source, to),
  'Session.putElementOnStream': ({ session, target }) => session.putElementOnStream(target, 1, on),
  'Session.putSignalOnStream': ({ session, target, source, signal }) =>
    session.putSignalOnStream(target, source, { ...on, signal, value: 1n }),
  'Signals.fetch': ({ session, signal }) => session.signals.fetch(signal),
  'Signals.signalOnStream': ({ session, signal }) => session.signals.signalOnStream(signal, { ...on, value: 1n }),
  'AtomicOperations.fetch': ({ session, signal }) => session.atomics.fetch(signal, to),
  'Team.barrier': ({ session }) => session.world.barrier(),
  'Team.barrierOnStream': ({ session }) => session.world.barrierOnStream({ stream }),
  'Team.translate': ({ session }) => session.world.translate(0, session.world),
  'Team.config': ({ session }) => session.world.config(),
  'Team.reduce': ({ session, target, source }) => session.world.reduce(target, source),
  'Team.reduceOnStream': ({ session, target, source }) => session.world.reduceOnStream(target, source, { stream }),
  'Team.broadcastOnStream': ({ session, target, source }) =>
    session.world.broadcastOnStream(target, source, { root: 0, stream }),
  'SymmetricBuffer.toArray': ({ source }) => source.toArray(),
  'SymmetricBuffer.toArray of nothing': ({ source }) => source.subarray(0, 0).toArray(),
  'SymmetricBuffer.fill': ({ target }) => target.fill(1),
  'SymmetricBuffer.copyFrom': ({ target }) => target.copyFrom(new Float32Array(8)),
  'SymmetricBuffer.peer': ({ target }) => target.peer(0),
  'SymmetricBuffer.multicastAddress': ({ session, target }) => target.multicastAddress(session.world),
}

test.each(Object.entries(awaitables))('%s in a loop lets the event loop turn', async (_, call) => {
  const of = await operands()
  expect(await loopTurns(() => call(of))).toBe(true)
})
