/**
 * Vector clock: decides which work comes before which. Each queue of work (a stream, or the thread of an NVSHMEM
 * session) counts its own work, and records how much work of the other queues ends before its next work begins. The
 * host has a clock too.
 */
export type Clock = number[]

/** A sequence of work that runs in order: a stream, or the thread of a session. */
export interface Queue {
  readonly id: number
  readonly clock: Clock
  readonly kind: 'legacy' | 'blocking' | 'nonBlocking' | 'thread'
  readonly device: number
}

/** A use of memory: the queue, and the number of the work in that queue. */
export interface Use {
  readonly queue: Queue
  readonly count: number
}

export class Clocks {
  readonly host: Clock = []
  readonly queues: Queue[] = []

  addQueue(kind: Queue['kind'], device: number): Queue {
    const queue: Queue = { id: this.queues.length, clock: [], kind, device }
    this.queues.push(queue)
    return queue
  }

  /**
   * Adds the next work to a queue. The legacy default stream waits for the blocking streams of its device, and they
   * wait for it.
   */
  issue(queue: Queue): Use {
    join(queue.clock, this.host)
    const waitsFor = queue.kind === 'legacy' ? 'blocking' : queue.kind === 'blocking' ? 'legacy' : undefined
    for (const other of this.queues) {
      if (other.kind === waitsFor && other.device === queue.device) join(queue.clock, other.clock)
    }
    const count = (queue.clock[queue.id] ?? 0) + 1
    queue.clock[queue.id] = count
    return { queue, count }
  }

  /** Returns true if `use` ends before the next work of `queue`, or of the host, begins. */
  isBefore(use: Use, queue: Queue | undefined): boolean {
    const knows = (clock: Clock): boolean => (clock[use.queue.id] ?? 0) >= use.count
    if (knows(this.host)) return true
    if (queue === undefined) return false
    if (queue === use.queue || knows(queue.clock)) return true
    const waitsFor = queue.kind === 'legacy' ? 'blocking' : queue.kind === 'blocking' ? 'legacy' : undefined
    return this.queues.some(
      (other) =>
        other.kind === waitsFor && other.device === queue.device && (other === use.queue || knows(other.clock)),
    )
  }

  /** Records that the host has waited for all work of the queue. */
  seen(queue: Queue): void {
    join(this.host, queue.clock)
  }
}

export function join(clock: Clock, other: Clock): void {
  for (let index = 0; index < other.length; index += 1) clock[index] = Math.max(clock[index] ?? 0, other[index] ?? 0)
}
