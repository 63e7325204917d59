/** NVSHMEM: teams and their collectives. */
import { DisposedError } from '@shoal/types'
import { integers, joined, partOf, reduced } from '../arithmetic.js'
import type { Block, Expected } from '../memory.js'
import type { Operation } from '../operation.js'
import {
  type Access,
  own,
  type Shmem,
  type Symmetric,
  sessionStream,
  shmemOf,
  type TeamModel,
  whole,
} from '../shmem.js'
import type { World } from '../world.js'

const makeTeam: Operation = {
  name: 'make a team',
  weight: 2,
  async run(world) {
    const shmem = shmemOf(world)
    if (shmem.liveTeams().length > 4) return undefined
    const parent = world.one(shmem.liveTeams())
    const start = world.random.integer(0, parent.members.length - 1)
    const stride = world.random.integer(1, 2)
    const size = world.random.integer(1, Math.floor((parent.members.length - 1 - start) / stride) + 1)
    const members = [...Array(size).keys()].map((index) => parent.members[start + index * stride] as number)
    const team = await parent.team?.splitStrided({ start, stride, size })
    const model = { name: world.name('team'), team, members, disposed: false }
    world.equal(`whether PE ${shmem.pe} is in ${model.name}`, team !== undefined, members.includes(shmem.pe))
    if (team !== undefined) {
      world.equal(`size of ${model.name}`, team.peCount, size)
      world.equal(`number in ${model.name}`, team.pe, members.indexOf(shmem.pe))
    }
    shmem.teams.push(model)
    world.cleanups.push(() => (model.disposed ? undefined : model.team?.dispose()))
    return `${model.name} of ${parent.name}: PEs ${members.join(', ')}`
  },
}

const disposeTeam: Operation = {
  name: 'dispose of a team',
  weight: 1,
  async run(world) {
    const shmem = shmemOf(world)
    const model = world.pick(shmem.liveTeams().slice(1))
    if (model === undefined) return undefined
    model.disposed = true
    if (model.team === undefined) return model.name
    const before = world.chance(0.5) ? model.team.sync() : undefined
    const promise = model.team.dispose()
    if (before !== undefined) world.later(`sync() of ${model.name}, disposed of at once`, before, () => {})
    await world.rejects(`sync() of ${model.name} after its end`, model.team.sync(), [DisposedError])
    world.later(`dispose() of ${model.name}`, promise, () => {})
    return model.name
  },
}

const collective: Operation = {
  name: 'collective',
  weight: 10,
  async run(world) {
    const shmem = shmemOf(world)
    const model = world.one(shmem.liveTeams())
    const { members, team } = model
    const target = world.pick(shmem.live())
    if (target === undefined) return undefined
    const isInteger = integers.includes(target.dtype)
    const kind = world.one(['broadcast', 'fcollect', 'allToAll', ...(isInteger ? ['reduce', 'reduceScatter'] : [])])
    const size = members.length
    const sourceLength =
      kind === 'fcollect' ? target.length / size : kind === 'reduceScatter' ? target.length * size : target.length
    if (!Number.isInteger(sourceLength) || (kind === 'allToAll' && target.length % size !== 0)) return undefined
    const source = world.pick(shmem.live(target.dtype, sourceLength).filter((other) => other !== target))
    if (source === undefined) return undefined
    const root = world.random.integer(0, size - 1)
    const op = world.one(['sum', 'prod', 'min', 'max', 'and', 'or', 'xor'] as const)
    const sources = members.map((member) => whole(source, member))
    const results = members.map((_, index): Expected => {
      switch (kind) {
        case 'broadcast':
          return sources[root] as Expected
        case 'fcollect':
          return joined(sources)
        case 'allToAll':
          return joined(sources.map((from) => partOf(from, index, size)))
        case 'reduce':
          return reduced(target.dtype, op, sources)
        default:
          return partOf(reduced(target.dtype, op, sources), index, size)
      }
    })
    // Each member reads memory of the others, so every member counts as a user of all memory.
    const accesses = members.flatMap((caller) =>
      [...own(target, members, true), ...own(source, members, false)].map((access) => ({ ...access, caller })),
    )
    const told = `${kind} of ${model.name}: ${target.name} from ${source.name}`
    const onStream = world.chance(0.3)
    await callCollective(world, shmem, model, { kind, root, op, target, source, accesses, onStream, told })
    for (const [index, member] of members.entries())
      (target.blocks[member] as Block).copy(0, results[index] as Expected)
    return team === undefined ? `${told} (not in it)` : told
  },
}

interface CollectiveCall {
  readonly kind: string
  readonly root: number
  readonly op: 'sum' | 'prod' | 'min' | 'max' | 'and' | 'or' | 'xor'
  readonly target: Symmetric
  readonly source: Symmetric
  readonly accesses: readonly Access[]
  readonly onStream: boolean
  readonly told: string
}

async function callCollective(world: World, shmem: Shmem, { team }: TeamModel, call: CollectiveCall): Promise<void> {
  const { kind, root, op, target, source, accesses, onStream, told } = call
  const options = kind === 'broadcast' ? { root } : kind.startsWith('reduce') ? { op } : {}
  const operands = (more: object): [] => [target.buffer, source.buffer, more] as never
  if (onStream) {
    const stream = sessionStream(world, shmem)
    const methods = team as unknown as Readonly<Record<string, (...values: unknown[]) => Promise<void>>>
    const more = { ...options, stream: stream.stream }
    const make = (): Promise<void> => (methods[`${kind}OnStream`] as () => Promise<void>).apply(team, operands(more))
    await shmem.onStream(stream, () => (team === undefined ? Promise.resolve() : make()), accesses)
    return
  }
  await shmem.prepare(accesses)
  if (team !== undefined) world.later(told, (await shmem.call(team, kind, ...operands(options))).ended, () => {})
  shmem.use(accesses)
}

const meet: Operation = {
  name: 'barrier',
  weight: 4,
  async run(world) {
    const shmem = shmemOf(world)
    const { session } = shmem
    const way = world.random.integer(0, 6)
    const name = (['syncAll', 'fence', 'quiet', 'barrierAll'] as const)[way]
    if (name !== undefined) world.later(`${name}()`, (await shmem.call(session, name)).ended, () => {})
    else if (way === 4) {
      const stream = sessionStream(world, shmem)
      await shmem.onStream(stream, () => session.barrierAllOnStream({ stream: stream.stream }), [])
    } else shmem.meet()
    return `${way}`
  },
}

export const nvshmemTeams: readonly Operation[] = [makeTeam, disposeTeam, collective, meet]
