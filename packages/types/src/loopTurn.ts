// Captured now, so that tests which replace the global timers or the clock do not stop the event loop.
const { setImmediate } = globalThis
const now: () => number = performance.now.bind(performance)

/** Milliseconds of immediate awaits after which the next await yields to the event loop. */
const longestTurn = 2
/** After this many quick awaits, read the clock only once per `burst`: a reading takes as long as an await. */
const burst = 8
/** Milliseconds between two readings that count as quick. */
const quick = 0.1

/** Time of the first immediate await of this event loop turn; 0 if none. */
let began = 0
let lastReading = 0
let quickReadings = 0
/** Awaits left until the next reading of the clock. */
let unread = 0

function turned(): void {
  began = 0
  quickReadings = 0
  unread = 0
}

/**
 * True if timers, I/O and signal handlers have waited 2 ms because awaits settled immediately.
 *
 * The caller must then let the event loop turn before its promise settles. Each promise that settles without the loop
 * calls this once.
 * @internal
 */
export function isLoopDue(): boolean {
  if (unread > 0) {
    unread -= 1
    return false
  }
  const time = now()
  if (began === 0) {
    began = time
    lastReading = time
    // The timer must not keep the process alive.
    setImmediate(turned).unref()
    return false
  }
  if (time - began >= longestTurn) return true
  quickReadings = time - lastReading < quick ? quickReadings + 1 : 0
  lastReading = time
  if (quickReadings >= burst) unread = burst - 1
  return false
}

/**
 * Settles a promise of completed native work.
 *
 * Settles it now, or in the next event loop turn when that is due.
 * @internal
 */
export function settleInTime(settle: () => void): void {
  if (isLoopDue()) setImmediate(settle)
  else settle()
}

/** Returns a promise of a known value; it yields to the event loop when that is due. @internal */
export function settledNow<T>(value: T): Promise<T> {
  return isLoopDue() ? inNextTurn(value) : Promise.resolve(value)
}

function inNextTurn<T>(value: T): Promise<T> {
  return new Promise((resolve) => void setImmediate(resolve, value))
}

const done: Promise<void> = Promise.resolve()

/** Like {@link settledNow} without a value; it usually reuses one promise. @internal */
export function doneNow(): Promise<void> {
  return isLoopDue() ? inNextTurn(undefined) : done
}
