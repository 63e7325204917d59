// Captured now, so that a test that replaces the global timers or the clock does not stop the loop from turning.
const { setImmediate } = globalThis
const now: () => number = performance.now.bind(performance)

/** Milliseconds without a turn after which the next await that could settle at once goes through the event loop. */
const longestTurn = 2
/**
 * After so many awaits in quick succession the clock is read once for so many: reading it takes as long as an await.
 */
const burst = 8
/** Milliseconds between two readings in quick succession. */
const quick = 0.1

/** When the first await of this turn settled at once; 0 if none has. */
let began = 0
let lastReading = 0
let quickReadings = 0
/** Awaits until the clock is read again. */
let unread = 0

function turned(): void {
  began = 0
  quickReadings = 0
  unread = 0
}

/**
 * Whether timers, I/O and signal handlers have waited for 2 ms because awaits settled at once. The caller then has to
 * let the loop turn before its promise settles. Each promise that settles without the loop asks once.
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
    // It must not keep the process alive.
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
 * Settles a promise of native work that has ended: now, or in the next turn of the event loop when that is due.
 * @internal
 */
export function settleInTime(settle: () => void): void {
  if (isLoopDue()) setImmediate(settle)
  else settle()
}

/**
 * A promise of a value that is known already. It settles at once, or through the event loop when that is due. @internal
 */
export function settledNow<T>(value: T): Promise<T> {
  return isLoopDue() ? inNextTurn(value) : Promise.resolve(value)
}

function inNextTurn<T>(value: T): Promise<T> {
  return new Promise((resolve) => void setImmediate(resolve, value))
}

const done: Promise<void> = Promise.resolve()

/** {@link settledNow} without a value, and without a new promise. @internal */
export function doneNow(): Promise<void> {
  return isLoopDue() ? inNextTurn(undefined) : done
}
