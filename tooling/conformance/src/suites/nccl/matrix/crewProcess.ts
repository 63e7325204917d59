// A process of one or more ranks of one communicator, for the cases in matrix.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { Device, type Stream } from '@shoal/driver'
import { Communicator, group, UniqueId } from '@shoal/nccl'
import { answerCommands } from '../../../support/child.js'
import { type Place, RankRun } from './rankRun.js'
import { describeTrial, type Trial } from './trial.js'

/** What a process is to be. */
export interface Crew {
  readonly worldSize: number
  /** Its ranks; each has the device of its number. */
  readonly ranks: readonly number[]
  /** The unique id; undefined where all ranks are in one process. */
  readonly id: string | undefined
}

/** What came of some trials. */
export interface CrewReport {
  readonly done: number
  readonly wrongs: number
  /** The first few. */
  readonly failures: readonly string[]
}

const mostFailures = 5
const timeout = 30_000

let places: Place[] = []

async function join({ worldSize, ranks, id }: Crew): Promise<void> {
  const devices = ranks.map((rank) => Device.get(rank))
  const communicators =
    id === undefined
      ? await Communicator.initAll(devices)
      : await Promise.all(
          ranks.map((rank) =>
            Communicator.initRank({ device: rank, rank, worldSize, id: UniqueId.fromBase64(id), timeout }),
          ),
        )
  places = communicators.map((communicator, index) => {
    const device = devices[index] as Device
    const stream: Stream = device.createStream({ nonBlocking: true })
    return { communicator, device, stream, rank: ranks[index] as number, worldSize }
  })
}

async function run(trials: readonly Trial[]): Promise<CrewReport> {
  const failures: string[] = []
  let done = 0
  let wrongs = 0
  for (const trial of trials) {
    const runs: RankRun[] = []
    try {
      for (const place of places) runs.push(new RankRun(trial, place))
      group(() => {
        for (const one of runs) one.call()
      })
      await Promise.all(places.map(({ communicator, stream }) => communicator.synchronize(stream, { timeout })))
      for (const [index, one] of runs.entries()) {
        const wrong = await one.check()
        if (wrong === undefined) continue
        const { rank, worldSize } = places[index] as Place
        wrongs += 1
        if (failures.length < mostFailures) failures.push(`rank ${rank}, ${describeTrial(trial, worldSize)}: ${wrong}`)
      }
      done += 1
    } catch (error) {
      // After an operation that failed the communicator is of no use: the other ranks have to learn of it.
      await Promise.all(places.map(({ communicator }) => communicator.abort()))
      const what = describeTrial(trial, places[0]?.worldSize ?? 0)
      throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    } finally {
      for (const one of runs) one.dispose()
    }
    // Messages of the parent come in between.
    if (done % 64 === 0) await sleep(0)
  }
  return { done, wrongs, failures }
}

async function leave(): Promise<void> {
  await Promise.all(places.map(({ communicator }) => communicator.destroy()))
  for (const { stream } of places) stream.dispose()
  places = []
}

answerCommands({ createId: () => UniqueId.create().toString(), join, run, leave })
