import { NativeMemory } from '@shoal/ffi'
import {
  NVSHMEM_TEAM_CONFIG_INITIALIZER,
  NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS,
  NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID,
  nvshmem_team_config_t,
  nvshmem_team_id_t,
  nvshmem_team_my_pe,
  nvshmem_team_n_pes,
  nvshmem_team_split_2d,
  nvshmem_team_split_strided,
  type nvshmem_team_t,
  nvshmemx_team_get_uniqueid,
  nvshmemx_team_init,
} from '@shoal/nvshmem-sys'
import { describeValue } from '@shoal/types'
import { requireOptions, requirePe, requireWhole } from '../checks.js'
import { checkNvshmem } from '../errors.js'
import type { WaitOptions } from '../queue/callQueue.js'
import type { LiveSession } from '../queue/liveSession.js'
import type { TeamParts } from './teamParts.js'

const most = 0x7fff_ffff

/** What a new team is to have, and how long to wait for it. */
export interface TeamConfig extends WaitOptions {
  /** Communication contexts that the team will want (`num_contexts`). Default: no wish. */
  readonly contexts?: number | undefined
}

/** Which PEs get into a team. */
export interface SplitStridedOptions extends TeamConfig {
  /** First PE of the new team, by its number in the old one. */
  readonly start: number
  /** Distance from one PE to the next. Default 1. */
  readonly stride?: number | undefined
  /** Number of PEs. */
  readonly size: number
}

/** How PEs are arranged in rows. */
export interface Split2dOptions extends TeamConfig {
  /** Number of PEs in a row; the last row may be shorter. */
  readonly xRange: number
}

/** A team of any PEs, and this process's place in it. */
export interface CreateTeamOptions extends TeamConfig {
  /** The id that one of its PEs made (`Session.teamUniqueId`) and all of them got. */
  readonly id: bigint
  /** Number of PEs in the team. */
  readonly peCount: number
  /** This process's number in the team. */
  readonly pe: number
}

/** The team that is split. */
export interface Parent {
  readonly handle: nvshmem_team_t
  readonly name: string
  readonly peCount: number
}

/** The configuration as memory, and the mask that says which fields count. */
function configMemory(
  options: TeamConfig,
  id: bigint | undefined,
  api: string,
): { readonly memory: NativeMemory; readonly mask: number } {
  const { contexts } = options
  if (contexts !== undefined) requireWhole(contexts, 'contexts', 0, most, api)
  const memory = NativeMemory.allocate(nvshmem_team_config_t.size)
  nvshmem_team_config_t.write(memory, {
    ...NVSHMEM_TEAM_CONFIG_INITIALIZER,
    ...(contexts === undefined ? {} : { num_contexts: contexts }),
    ...(id === undefined ? {} : { uniqueid: id }),
  })
  const mask =
    (contexts === undefined ? 0 : NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS) |
    (id === undefined ? 0 : NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID)
  return { memory, mask }
}

export async function splitStrided(
  live: LiveSession,
  parent: Parent,
  options: SplitStridedOptions,
): Promise<TeamParts | undefined> {
  const api = 'Team.splitStrided'
  requireOptions(options, api, '{ start, stride, size }')
  const { start, stride = 1, size } = options
  const { handle } = parent
  requirePe(start, parent.peCount, api, 'start')
  requireWhole(size, 'size', 1, parent.peCount, api)
  requireWhole(stride, 'stride', -most, most, api)
  const last = start + (size - 1) * stride
  if (last < 0 || last >= parent.peCount || (stride === 0 && size > 1)) {
    throw new RangeError(
      `${api}: ${size} PEs from ${start} in steps of ${stride} are not all in the team of ${parent.peCount}`,
    )
  }
  const { memory, mask } = configMemory(options, undefined, api)
  const out = noTeams(1)
  try {
    const split = (): number => nvshmem_team_split_strided(handle, start, stride, size, memory, mask, out)
    const status = await live.queue.runOne(api, split, { wait: options, keep: [memory, out] })
    checkNvshmem(status, 'nvshmem_team_split_strided')
    return await teamOf(live, out.i32[0], `${parent.name}[${start}, step ${stride}, ${size}]`)
  } finally {
    memory.dispose()
    out.dispose()
  }
}

export async function split2d(
  live: LiveSession,
  parent: Parent,
  options: Split2dOptions,
): Promise<{ readonly x: TeamParts | undefined; readonly y: TeamParts | undefined }> {
  const api = 'Team.split2d'
  requireOptions(options, api, '{ xRange }')
  const { handle } = parent
  const xRange = requireWhole(options.xRange, 'xRange', 1, most, api)
  const { memory, mask } = configMemory(options, undefined, api)
  const out = noTeams(2)
  try {
    const xOut = out.address
    const yOut = out.address + 4n
    const split = (): number => nvshmem_team_split_2d(handle, xRange, memory, mask, xOut, memory, mask, yOut)
    const status = await live.queue.runOne(api, split, { wait: options, keep: [memory, out] })
    checkNvshmem(status, 'nvshmem_team_split_2d')
    return {
      x: await teamOf(live, out.i32[0], `${parent.name} row of ${xRange}`),
      y: await teamOf(live, out.i32[1], `${parent.name} column of ${xRange}`),
    }
  } finally {
    memory.dispose()
    out.dispose()
  }
}

/** An id for `createTeam`, which one PE makes for the PEs of a new team. */
export async function teamUniqueId(live: LiveSession): Promise<bigint> {
  const api = 'Session.teamUniqueId'
  const out = NativeMemory.allocate(8)
  try {
    const status = await live.queue.runOne(api, () => nvshmemx_team_get_uniqueid(out), { keep: [out] })
    checkNvshmem(status, 'nvshmemx_team_get_uniqueid')
    return out.u64[0] ?? 0n
  } finally {
    out.dispose()
  }
}

export async function createTeam(live: LiveSession, options: CreateTeamOptions): Promise<TeamParts> {
  const api = 'Session.createTeam'
  requireOptions(options, api, '{ id, peCount, pe }')
  const { id } = options
  if (typeof id !== 'bigint' || BigInt.asUintN(64, id) !== id) {
    throw new TypeError(`${api}: id must be the bigint of Session.teamUniqueId, got ${describeValue(id)}`)
  }
  const peCount = requireWhole(options.peCount, 'peCount', 1, live.peCount, api)
  const pe = requirePe(options.pe, peCount, api)
  const { memory, mask } = configMemory(options, id, api)
  const out = noTeams(1)
  try {
    const make = (): number => nvshmemx_team_init(out, memory, mask, peCount, pe)
    const status = await live.queue.runOne(api, make, { wait: options, keep: [memory, out] })
    checkNvshmem(status, 'nvshmemx_team_init')
    const team = await teamOf(live, out.i32[0], `created of ${peCount}`)
    if (team === undefined) throw new TypeError(`${api}: NVSHMEM made no team of these PEs`)
    return team
  } finally {
    memory.dispose()
    out.dispose()
  }
}

/** Where NVSHMEM writes the handles of teams. What it leaves alone is no team. */
function noTeams(count: number): NativeMemory {
  const out = NativeMemory.allocate(4 * count)
  out.i32.fill(nvshmem_team_id_t.NVSHMEM_TEAM_INVALID)
  return out
}

/** The team of a handle that NVSHMEM wrote; undefined for a PE that is not in the team. */
async function teamOf(live: LiveSession, value: number | undefined, name: string): Promise<TeamParts | undefined> {
  if (value === undefined || value === nvshmem_team_id_t.NVSHMEM_TEAM_INVALID) return undefined
  const handle = value as nvshmem_team_t
  const [pe, peCount] = await live.queue.run('reading a team', () => {
    nvshmem_team_my_pe(handle)
    nvshmem_team_n_pes(handle)
  })
  return { live, handle, name, pe: Number(pe), peCount: Number(peCount), isPredefined: false }
}
