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
import {
  type OptionKeys,
  outOfRange,
  requireAddress,
  requireInteger,
  requireOptions,
  type WaitOptions,
  waitKeys,
} from '@shoal/types'
import { checkNvshmem } from '../errors.js'
import { waitOf } from '../queue/callQueue.js'
import type { LiveSession } from '../queue/liveSession.js'
import type { TeamParts } from './teamParts.js'

const greatestInt = 0x7fff_ffff

/** Configuration of a new team, and limits of the wait for the other PEs. */
export interface TeamConfig extends WaitOptions {
  /** Number of communication contexts that the team may use (`num_contexts`). Default: NVSHMEM's own. */
  readonly contexts?: number | undefined
}

/** Selects PEs of a team at equal distances for a new team. */
export interface SplitStridedOptions extends TeamConfig {
  /** First PE of the new team, by its number in the old team. */
  readonly start: number
  /** Distance between two PEs. Default: 1. */
  readonly stride?: number | undefined
  /** Number of PEs. */
  readonly size: number
}

/** Options that arrange the PEs of a team in rows. */
export interface Split2dOptions extends TeamConfig {
  /** Number of PEs per row; the last row may be shorter. */
  readonly xRange: number
}

/** Options of a team of any PEs. */
export interface CreateTeamOptions extends TeamConfig {
  /** Id that one PE of the new team makes (`Session.teamUniqueId`) and all its PEs receive. */
  readonly id: bigint
  /** Number of PEs in the team. */
  readonly peCount: number
  /** This process's number in the team. */
  readonly pe: number
}

const teamKeys: OptionKeys<TeamConfig> = { contexts: true, ...waitKeys }
const stridedKeys: OptionKeys<SplitStridedOptions> = { start: true, stride: true, size: true, ...teamKeys }
const split2dKeys: OptionKeys<Split2dOptions> = { xRange: true, ...teamKeys }
const createKeys: OptionKeys<CreateTeamOptions> = { id: true, peCount: true, pe: true, ...teamKeys }

/** The team to split. */
export interface Parent {
  readonly handle: nvshmem_team_t
  readonly name: string
  readonly peCount: number
}

/** Returns the configuration in native memory, and the mask of the fields in use. */
function configMemory(
  options: TeamConfig,
  id: bigint | undefined,
  api: string,
): { readonly memory: NativeMemory; readonly mask: number } {
  const { contexts } = options
  if (contexts !== undefined) requireInteger(contexts, api, 'contexts', 0, greatestInt)
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
  requireOptions(options, api, stridedKeys)
  const { start, stride = 1, size } = options
  const { handle } = parent
  requireInteger(start, api, 'start', 0, parent.peCount - 1)
  requireInteger(size, api, 'size', 1, parent.peCount)
  requireInteger(stride, api, 'stride', -greatestInt, greatestInt)
  const last = start + (size - 1) * stride
  if (last < 0 || last >= parent.peCount || (stride === 0 && size > 1)) {
    throw outOfRange(
      api,
      'stride',
      `such that ${size} PEs from ${start} on are in the team of ${parent.peCount}`,
      stride,
    )
  }
  const { memory, mask } = configMemory(options, undefined, api)
  const out = noTeams(1)
  try {
    const split = (): number => nvshmem_team_split_strided(handle, start, stride, size, memory, mask, out)
    const [status] = await live.queue.run(api, split, { wait: waitOf(options), keep: [memory, out] })
    checkNvshmem(status, 'nvshmem_team_split_strided')
    return await teamOf(live, out.i32[0], `${parent.name}[${start}, step ${stride}, ${size}]`)
  } finally {
    live.queue.free(memory)
    live.queue.free(out)
  }
}

export async function split2d(
  live: LiveSession,
  parent: Parent,
  options: Split2dOptions,
): Promise<{ readonly x: TeamParts | undefined; readonly y: TeamParts | undefined }> {
  const api = 'Team.split2d'
  requireOptions(options, api, split2dKeys)
  const { handle } = parent
  const xRange = requireInteger(options.xRange, api, 'xRange', 1, greatestInt)
  const { memory, mask } = configMemory(options, undefined, api)
  const out = noTeams(2)
  try {
    const xOut = out.address
    const yOut = out.address + 4n
    const split = (): number => nvshmem_team_split_2d(handle, xRange, memory, mask, xOut, memory, mask, yOut)
    const [status] = await live.queue.run(api, split, { wait: waitOf(options), keep: [memory, out] })
    checkNvshmem(status, 'nvshmem_team_split_2d')
    return {
      x: await teamOf(live, out.i32[0], `${parent.name} row of ${xRange}`),
      y: await teamOf(live, out.i32[1], `${parent.name} column of ${xRange}`),
    }
  } finally {
    live.queue.free(memory)
    live.queue.free(out)
  }
}

/** Makes an id for `createTeam`, which one PE makes for all PEs of a new team. */
export async function teamUniqueId(live: LiveSession): Promise<bigint> {
  const api = 'Session.teamUniqueId'
  const out = NativeMemory.allocate(8)
  try {
    const [status] = await live.queue.run(api, () => nvshmemx_team_get_uniqueid(out), { keep: [out] })
    checkNvshmem(status, 'nvshmemx_team_get_uniqueid')
    return out.u64[0] ?? 0n
  } finally {
    live.queue.free(out)
  }
}

export async function createTeam(live: LiveSession, options: CreateTeamOptions): Promise<TeamParts> {
  const api = 'Session.createTeam'
  requireOptions(options, api, createKeys)
  const id = requireAddress(options.id, api, 'id')
  const peCount = requireInteger(options.peCount, api, 'peCount', 1, live.peCount)
  const pe = requireInteger(options.pe, api, 'pe', 0, peCount - 1)
  const { memory, mask } = configMemory(options, id, api)
  const out = noTeams(1)
  try {
    const make = (): number => nvshmemx_team_init(out, memory, mask, peCount, pe)
    const [status] = await live.queue.run(api, make, { wait: waitOf(options), keep: [memory, out] })
    checkNvshmem(status, 'nvshmemx_team_init')
    const team = await teamOf(live, out.i32[0], `created of ${peCount}`)
    if (team === undefined) throw new TypeError(`${api}: NVSHMEM made no team of these PEs`)
    return team
  } finally {
    live.queue.free(memory)
    live.queue.free(out)
  }
}

/** Allocates memory for the handles of teams, initialized to "no team". */
function noTeams(count: number): NativeMemory {
  const out = NativeMemory.allocate(4 * count)
  out.i32.fill(nvshmem_team_id_t.NVSHMEM_TEAM_INVALID)
  return out
}

/** Returns the team of a handle that NVSHMEM wrote; undefined for a PE that is not in the team. */
async function teamOf(live: LiveSession, value: number | undefined, name: string): Promise<TeamParts | undefined> {
  if (value === undefined || value === nvshmem_team_id_t.NVSHMEM_TEAM_INVALID) return undefined
  const handle = value as nvshmem_team_t
  const [pe, peCount] = await live.queue.run('reading a team', () => {
    nvshmem_team_my_pe(handle)
    nvshmem_team_n_pes(handle)
  })
  return { live, handle, name, pe: Number(pe), peCount: Number(peCount), isPredefined: false }
}
