import type { SymmetricBuffer, Team } from '@shoal/nvshmem'
import { dtypeInfo } from '@shoal/types'
import { difference, reduced } from '../../support/reduction/reference.js'
import { type Values, valuesOf } from '../../support/reduction/values.js'
import { elementsIn, type Pe, readBack, reset } from './pe.js'
import { repeated, type Steps } from './transfers.js'
import type { Trial } from './trial.js'

type Collective = Extract<Trial, { readonly kind: 'broadcast' | 'fcollect' | 'allToAll' | 'reduce' | 'reduceScatter' }>

/** A function of the library that replaces the safe package's. */
export type CollectiveCall = (team: number, target: bigint, source: bigint, root: number) => void

const nothing: Steps = { prepare: () => undefined, act: () => Promise.resolve(), check: () => undefined }

/** Tests a collective of a team. A PE outside the team does nothing. */
export function collective(pe: Pe, trial: Collective, raw?: CollectiveCall): Steps {
  const team = pe.teams[trial.team]
  return team === undefined ? nothing : inTeam(pe, team, trial, raw)
}

function inTeam(pe: Pe, team: Team, trial: Collective, raw: CollectiveCall | undefined): Steps {
  const { stream } = pe
  const { kind, dtype, way, count, seed } = trial
  const { pe: own, peCount } = team
  const size = dtypeInfo(dtype).bytes
  const op = 'op' in trial ? trial.op : undefined
  const values = (of: number): Values => valuesOf({ dtype, op, seed }, of, peCount, count * peCount)
  const sourceLength = kind === 'allToAll' || kind === 'reduceScatter' ? count * peCount : count
  const targetLength = kind === 'allToAll' || kind === 'fcollect' ? count * peCount : count
  const root = seed % peCount
  return {
    prepare() {
      const bytes = repeated(values(own), sourceLength * size)
      if (trial.inPlace) return reset(pe.target, dtype, count, bytes)
      reset(pe.target, dtype, targetLength)
      reset(pe.source, dtype, sourceLength, bytes)
    },
    async act() {
      const target = elementsIn(pe.target, dtype, targetLength)
      const source = trial.inPlace ? target : elementsIn(pe.source, dtype, sourceLength)
      const options = { count, ...(op === undefined ? {} : { op }), ...(kind === 'broadcast' ? { root } : {}) }
      if (raw === undefined) await call(team, trial, target, source, options, stream)
      else raw(team.handle, target.address, source.address, root)
      if (way === 'stream') await stream.synchronize({ timeout: 30_000 })
    },
    check() {
      const got = readBack(pe.target, dtype, targetLength)
      if (op !== undefined) {
        const inputs = Array.from({ length: peCount }, (_, of) => values(of))
        return difference(dtype, got, reduced(dtype, op, inputs), kind === 'reduceScatter' ? own * count : 0)
      }
      if (kind === 'broadcast') return difference(dtype, got, { kind: 'exact', bytes: values(root).bytes }, 0)
      for (let from = 0; from < peCount; from += 1) {
        const part = got.subarray(from * count * size, (from + 1) * count * size)
        const start = kind === 'allToAll' ? own * count : 0
        const wrong = difference(dtype, part, { kind: 'exact', bytes: values(from).bytes }, start)
        if (wrong !== undefined) return `part ${from}: ${wrong}`
      }
      return undefined
    },
  }
}

type Call = (target: SymmetricBuffer, source: SymmetricBuffer, options: object) => unknown

async function call(
  team: Team,
  { kind, way }: Collective,
  target: SymmetricBuffer,
  source: SymmetricBuffer,
  options: object,
  stream: Pe['stream'],
): Promise<void> {
  const methods = team as unknown as Record<string, Call>
  if (way === 'wait') await methods[kind]?.call(team, target, source, { ...options, timeout: 30_000 })
  else if (way === 'sync') methods[`${kind}Sync`]?.call(team, target, source, options)
  else await methods[`${kind}OnStream`]?.call(team, target, source, { ...options, stream })
}
