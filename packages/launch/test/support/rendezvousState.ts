import { RendezvousState } from '../../src/rendezvous/state.js'

export interface Made {
  readonly state: RendezvousState
  /** Makes a request and returns its number: 10 times the rank, plus the rank's count of requests. */
  readonly ask: (rank: number, op: string, fields?: object, body?: string) => number
  /** Returns the messages to each rank since the last call. */
  readonly answers: () => unknown[][]
}

/** Creates a state whose ranks are all connected. */
export function made(worldSize: number): Made {
  const state = new RendezvousState(worldSize)
  const heard: unknown[][] = Array.from({ length: worldSize }, () => [])
  const ids = Array.from({ length: worldSize }, () => 0)
  const connect = (rank: number): void =>
    state.connected(rank, (header, body) => {
      heard[rank]?.push(body === undefined ? header : { ...header, body: String(Buffer.from(body)) })
    })
  for (let rank = 0; rank < worldSize; rank += 1) connect(rank)
  const ask = (rank: number, op: string, fields: object = {}, body = ''): number => {
    const id = rank * 10 + (ids[rank] = (ids[rank] as number) + 1)
    state.received(rank, { op, id, space: 0, ...fields }, Buffer.from(body))
    return id
  }
  const answers = (): unknown[][] => heard.map((one) => one.splice(0))
  return { state, ask, answers }
}

export const lost = (...ranks: number[]) => ({ kind: 'lost', ranks })
export const left = (...ranks: number[]) => ({ kind: 'left', ranks })
export const late = (...ranks: number[]) => ({ kind: 'timeout', ranks })
export const refused = (message: string) => ({ kind: 'refused', message })
export const twice = refused('this rank is already waiting there')
