// Checks that NCCL reads the structs of nccl-sys: every field of its config, and structs that the device API takes by
// value. NCCL prints what it read on stdout, so a child process makes the calls, and this process compares the output.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { NativeMemory, readCString } from '@shoal/ffi'
import * as nccl from '@shoal/nccl-sys'

/** A value for each field that differs from every default, and the words that NCCL prints it with. */
const fields = {
  blocking: [1, 'Blocking'],
  cgaClusterSize: [2, 'CGA cluster size'],
  minCTAs: [3, 'Min CTAs'],
  maxCTAs: [7, 'Max CTAs'],
  netName: ['Socket', 'Net name'],
  splitShare: [1, 'Split share'],
  trafficClass: [5, 'Traffic class'],
  commName: ['shoal', 'Comm name'],
  collnetEnable: [0, 'Collnet enable'],
  CTAPolicy: [1, 'CTA policy flags'],
  shrinkShare: [1, 'shrinkShare'],
  nvlsCTAs: [6, 'nvlsCTAs'],
  nChannelsPerNetPeer: [2, 'nChannelsPerNetPeer'],
  nvlinkCentricSched: [1, 'nvlinkCentricSched'],
  graphUsageMode: [1, 'graphUsageMode'],
  numRmaCtx: [2, 'numRmaCtx'],
  maxP2pPeers: [9, 'maxP2pPeers'],
  graphStreamOrdering: [1, 'graphStreamOrdering'],
}

if (process.argv[2] === 'ask') ask()
else if (process.env.SHOAL_DEVICE === 'sim')
  console.log('the software device has an NCCL of its own: nothing to compare')
else compare()

function ask() {
  const handle = new BigUint64Array(1)
  const id = nccl.ncclUniqueId.allocate()
  const init = (config) => {
    check(nccl.ncclGetUniqueId(id))
    return nccl.ncclCommInitRankConfig(handle, 1, id, 0, config)
  }
  const broken = nccl.initialNcclConfig()
  broken.u32[2] = 1
  const refused = init(broken)
  const known = nccl.ncclConfigFields()
  check(init(nccl.initialNcclConfig(Object.fromEntries(known.map((field) => [field, fields[field][0]])))))
  const comm = nccl.ncclComm_t(handle[0])
  const answers = { version: nccl.nccl.version, known, refused }
  if (nccl.nccl.version >= 22803) {
    answers.teams = [nccl.ncclTeamWorld(comm), nccl.ncclTeamLsa(comm), nccl.ncclTeamRail(comm)]
    const world = nccl.ncclTeam.allocate(answers.teams[0])
    answers.ranks = [nccl.ncclTeamRankToWorld(comm, world, 0), nccl.ncclTeamRankToLsa(comm, world, 0)]
    // This rank does not exist, but the arithmetic works: world rank = own world rank + (rank - own rank in the team) ×
    // stride.
    const spread = nccl.ncclTeam.allocate({ nRanks: 4, rank: 2, stride: 3 })
    answers.far = nccl.ncclTeamRankToWorld(comm, spread, 3)
    answers.device = deviceCommunicator(comm)
  }
  if (nccl.nccl.version >= 22902) {
    const properties = nccl.initialNcclCommProperties()
    check(nccl.ncclCommQueryProperties(comm, properties))
    const { rank, nRanks, cudaDev } = nccl.readNcclCommProperties(properties)
    answers.properties = { rank, nRanks, cudaDev }
  }
  check(nccl.ncclCommDestroy(comm))
  console.log(`\nanswers ${JSON.stringify(answers)}`)
}

/** A device communicator needs symmetric memory, which not every host allows. Its answer is reported. */
function deviceCommunicator(comm) {
  const requirements = nccl.initialNcclDevCommRequirements({ lsaBarrierCount: 2 })
  const device = NativeMemory.allocate(nccl.ncclDevComm.size)
  const status = nccl.ncclDevCommCreate(comm, requirements, device)
  if (status !== 0) return readCString(nccl.ncclGetLastError(comm))
  return nccl.ncclDevCommDestroy(comm, device)
}

function check(status) {
  if (status !== 0) throw new Error(`NCCL: ${readCString(nccl.ncclGetLastError(null))} (${status})`)
}

function compare() {
  const run = spawnSync(process.execPath, [fileURLToPath(import.meta.url), 'ask'], {
    encoding: 'utf8',
    env: { ...process.env, NCCL_DEBUG: 'INFO', NCCL_DEBUG_SUBSYS: 'ENV' },
    maxBuffer: 1 << 26,
  })
  const answer = /^answers (.*)$/m.exec(run.stdout)?.[1]
  if (answer === undefined)
    throw new Error(`no answer (${run.status ?? run.signal}): ${run.stdout.slice(-2000)}${run.stderr.slice(-2000)}`)
  const { version, known, refused, teams, ranks, far, device, properties } = JSON.parse(answer)
  const wrong = []
  const expect = (what, found, wanted) => {
    if (JSON.stringify(found) !== JSON.stringify(wanted))
      wrong.push(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`)
  }
  for (const field of known) {
    const [value, words] = fields[field]
    expect(field, new RegExp(`Comm config ${words} set to (\\S+)`).exec(run.stdout)?.[1], String(value))
  }
  expect('a config without its magic number', refused, nccl.ncclResult_t.ncclInvalidArgument)
  if (teams) {
    const alone = { nRanks: 1, rank: 0, stride: 1 }
    expect('teams of one rank', teams, [alone, alone, alone])
    expect('rank 0', ranks, [0, 0])
    expect('rank 3 of every third, seen from rank 2', far, 3)
  }
  if (properties) expect('properties', properties, { rank: 0, nRanks: 1, cudaDev: 0 })
  console.log(
    `NCCL ${nccl.formatNcclVersion(version)}: ${known.length} fields of its config read back; device communicator: ${device}`,
  )
  for (const line of wrong) console.log(`wrong: ${line}`)
  process.exitCode = wrong.length === 0 ? 0 : 1
}
